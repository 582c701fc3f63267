"""Keras: not there yet."""
raise ImportError("horovod.keras is not there yet: Corro has PyTorch only so far")
