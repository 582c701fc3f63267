"""MXNet: not supported yet."""
raise ImportError("horovod.mxnet is not supported yet: Corro has PyTorch only so far")
