"""Spark: not there yet."""
raise ImportError("horovod.spark is not there yet: Corro has PyTorch only so far")
