"""MXNet: not there yet."""
raise ImportError("horovod.mxnet is not there yet: Corro has PyTorch only so far")
