"""Collectives between the workers of a job: corro.h by ctypes, with nothing to compile.

    import array, corro

    with corro.Context() as job:
        values = array.array("d", [job.rank] * 4)
        job.allreduce(values)               # in place: the sum over all ranks
        print(job.rank, "of", job.size, values)

Buffers are anything writable, contiguous and of type float32 or float64 that speaks Python's
buffer protocol: array.array, NumPy arrays, memoryviews.
"""
import ctypes
import faulthandler
import os
import signal
from pathlib import Path

SUM, AVERAGE, MIN, MAX = range(4)
INVALID, TIMED_OUT, PEER_LOST, LAUNCHER_LOST, REFUSED, NO_MEMORY, SYSTEM = range(1, 8)
_TYPES = {"f": 0, "d": 1}
# A worker that gets this signal writes the stacks of all its Python threads to stderr and goes on: so the launcher
# shows what the others did when one failed.  python_dump_signal() in launcher/agent/evidence.h is the same.
DUMP_SIGNAL = signal.SIGRTMIN + 12


class Error(RuntimeError):
    """What went wrong; `status` is one of the numbers above, `rank` who is to blame, or -1."""

    def __init__(self, text, status, rank):
        super().__init__(text)
        self.status, self.rank = status, rank


def _load():
    """CORRO_LIBRARY, or beside this package, or the checkout's build, or where the system looks."""
    here = Path(__file__).resolve().parent
    beside = [here / "libcorro.so", here.parent.parent / "build" / "release" / "lib" / "libcorro.so"]
    found = os.environ.get("CORRO_LIBRARY") or next((p for p in beside if p.exists()), "libcorro.so")
    library = ctypes.CDLL(str(found))

    pointer, integer, size = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
    out = ctypes.POINTER(pointer)
    signatures = {
        "corro_open": (integer, pointer, out, out),
        "corro_close": (None, pointer),
        "corro_allreduce": (integer, pointer, pointer, size, ctypes.c_int32, ctypes.c_int32, out),
        "corro_broadcast": (integer, pointer, pointer, size, ctypes.c_int32, integer, out),
        "corro_barrier": (integer, pointer, out),
        "corro_error_text": (ctypes.c_char_p, pointer),
        "corro_error_rank": (integer, pointer),
        "corro_error_free": (None, pointer),
        "corro_version": (ctypes.c_char_p,),
    }
    for place in ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size"):
        signatures[f"corro_{place}"] = (integer, pointer)
    for name, (result, *arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def _offer_stacks():
    """Not from a thread or where the script has a use for the signal itself, and never a reason not to be imported."""
    try:
        if "HOROVOD_RANK" in os.environ and signal.getsignal(DUMP_SIGNAL) == signal.SIG_DFL:
            faulthandler.register(DUMP_SIGNAL, file=2, all_threads=True)
    except (AttributeError, OSError, RuntimeError, ValueError):
        pass


class _Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("timeout_ms", ctypes.c_int64)]


class Context:
    """One worker's membership in its job.  `timeout` is in seconds, for each collective."""

    def __init__(self, timeout=None):
        self._library, self._context = _load(), ctypes.c_void_p()
        options = _Options(ctypes.sizeof(_Options), int((timeout or 0) * 1000))
        self._call("corro_open", ctypes.byref(options), ctypes.byref(self._context))

    def close(self):
        self._library.corro_close(self._context)
        self._context = ctypes.c_void_p()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    rank = property(lambda self: self._library.corro_rank(self._context))
    size = property(lambda self: self._library.corro_size(self._context))
    local_rank = property(lambda self: self._library.corro_local_rank(self._context))
    local_size = property(lambda self: self._library.corro_local_size(self._context))
    cross_rank = property(lambda self: self._library.corro_cross_rank(self._context))
    cross_size = property(lambda self: self._library.corro_cross_size(self._context))
    version = property(lambda self: self._library.corro_version().decode())

    def allreduce(self, buffer, reduction=SUM):
        """Replaces each element by the reduction of all ranks' elements there."""
        self._call("corro_allreduce", self._context, *_elements(buffer), reduction)

    def broadcast(self, buffer, root=0):
        """Replaces the elements of every other rank by those of `root`."""
        self._call("corro_broadcast", self._context, *_elements(buffer), root)

    def barrier(self):
        """Returns when every rank has called it."""
        self._call("corro_barrier", self._context)

    def _call(self, name, *arguments):
        why = ctypes.c_void_p()
        status = getattr(self._library, name)(*arguments, ctypes.byref(why))
        if status == 0:
            return
        text, rank = self._library.corro_error_text(why).decode(), self._library.corro_error_rank(why)
        self._library.corro_error_free(why)
        raise Error(text or "out of memory", status, rank)


def _elements(buffer):
    """Where, how many and of what type.  The reference keeps the buffer in place for the call."""
    view = memoryview(buffer)
    if view.readonly or not view.c_contiguous or view.format not in _TYPES:
        raise TypeError("a buffer must be writable and contiguous, of type float32 or float64")
    start = ctypes.byref(ctypes.c_char.from_buffer(view)) if view.nbytes else None
    return start, view.nbytes // view.itemsize, _TYPES[view.format]


_offer_stacks()
