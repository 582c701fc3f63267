"""TensorFlow: not supported yet."""
raise ImportError("horovod.tensorflow is not supported yet: Corro has PyTorch only so far")
