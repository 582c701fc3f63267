"""Spark: not supported yet."""
raise ImportError("horovod.spark is not supported yet: Corro has PyTorch only so far")
