"""Ray: not supported yet."""
raise ImportError("horovod.ray is not supported yet: Corro has PyTorch only so far")
