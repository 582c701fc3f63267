"""Keras: not supported yet."""
raise ImportError("horovod.keras is not supported yet: Corro has PyTorch only so far")
