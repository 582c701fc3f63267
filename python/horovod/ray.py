"""Ray: not there yet."""
raise ImportError("horovod.ray is not there yet: Corro has PyTorch only so far")
