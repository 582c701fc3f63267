"""Horovod's Python interface, on Corro's runtime.

`import horovod.torch as hvd` is what a training script imports.  `__version__` is the release of Horovod whose
interface this is, because scripts compare it; `corro.version()` is ours.
"""
from horovod.common._installation import warn_of_another_horovod
from horovod.common._missing import missing

__version__ = "0.28.1"

warn_of_another_horovod(__file__)

__getattr__ = missing("horovod", {
    "run": "horovod.run, which starts a function on several workers",
    "tensorflow": "TensorFlow", "keras": "Keras", "mxnet": "MXNet", "spark": "Spark", "ray": "Ray",
})
