"""TensorFlow: not there yet."""
raise ImportError("horovod.tensorflow is not there yet: Corro has PyTorch only so far")
