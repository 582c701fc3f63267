"""Collectives between the workers of a job: corro.h by ctypes, with nothing to compile.

    import array, corro

    with corro.Context() as job:
        values = array.array("d", [job.rank] * 4)
        job.allreduce(values)               # in place: the sum over all ranks
        print(job.rank, "of", job.size, values)

Buffers are anything writable and contiguous of integers, floats or bools that speaks Python's
buffer protocol: array.array, NumPy arrays, memoryviews.  A library that has addresses instead
(PyTorch) uses the methods that end in `_at`.
"""
import ctypes
import faulthandler
import os
import signal
from typing import Any, List, Optional, Tuple

from corro import _library

SUM, AVERAGE, MIN, MAX, PRODUCT, BIT_AND, BIT_OR, ADASUM = range(8)
(FLOAT32, FLOAT64, UINT8, INT8, UINT16, INT16, UINT32, INT32, UINT64, INT64, FLOAT16, BFLOAT16, BOOL) = range(13)
INVALID, TIMED_OUT, PEER_LOST, LAUNCHER_LOST, REFUSED, NO_MEMORY, SYSTEM = range(1, 8)
# By the letters of Python's struct module.  "l" and "L" have as many bytes as a C long.
_TYPES = {"f": FLOAT32, "d": FLOAT64, "e": FLOAT16, "?": BOOL, "B": UINT8, "b": INT8, "H": UINT16, "h": INT16,
          "I": UINT32, "i": INT32, "Q": UINT64, "q": INT64,
          "L": UINT64 if ctypes.sizeof(ctypes.c_long) == 8 else UINT32,
          "l": INT64 if ctypes.sizeof(ctypes.c_long) == 8 else INT32}
# A worker that gets this signal writes the stacks of all its Python threads to stderr and goes on: so the launcher
# shows what the others did when one failed.  python_dump_signal() in launcher/agent/evidence.h is the same.
DUMP_SIGNAL = signal.SIGRTMIN + 12


class Error(RuntimeError):
    """A call that failed: `status` is one of the numbers above, `rank` the rank to blame, or -1."""

    def __init__(self, text: str, status: int, rank: int) -> None:
        super().__init__(text)
        self.status, self.rank = status, rank


def version() -> str:
    """The version of the library in use."""
    return _library.load().corro_version().decode()


def backends() -> List[str]:
    """What can carry tensors between workers."""
    return ["shared memory", "tcp"]


class _Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("timeout_ms", ctypes.c_int64)]


class Context:
    """One worker's membership in its job.  `timeout` is in seconds, for each collective."""

    def __init__(self, timeout: Optional[float] = None) -> None:
        self._context = ctypes.c_void_p()
        self._library = _library.load()
        options = _Options(ctypes.sizeof(_Options), int((timeout or 0) * 1000))
        self._call("corro_open", ctypes.byref(options), ctypes.byref(self._context))

    def close(self) -> None:
        self._library.corro_close(self._context)
        self._context = ctypes.c_void_p()

    def __enter__(self) -> "Context":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    rank = property(lambda self: self._library.corro_rank(self._context))
    size = property(lambda self: self._library.corro_size(self._context))
    local_rank = property(lambda self: self._library.corro_local_rank(self._context))
    local_size = property(lambda self: self._library.corro_local_size(self._context))
    cross_rank = property(lambda self: self._library.corro_cross_rank(self._context))
    cross_size = property(lambda self: self._library.corro_cross_size(self._context))
    version = property(lambda self: self._library.corro_version().decode())

    def allreduce(self, buffer: Any, reduction: int = SUM) -> None:
        """Replaces each element by the reduction of all ranks' elements there."""
        self.allreduce_at(*_elements(buffer), reduction)

    def broadcast(self, buffer: Any, root: int = 0) -> None:
        """Replaces the elements of every other rank by those of `root`."""
        self.broadcast_at(*_elements(buffer), root)

    def barrier(self) -> None:
        """Returns when every rank has called it."""
        self._call("corro_barrier", self._context)

    def allreduce_at(self, address: Any, count: int, type_: int, reduction: int = SUM) -> None:
        """allreduce of `count` elements of a type (FLOAT32, …) at an address, which stay in place for the call."""
        self._call("corro_allreduce", self._context, address, count, type_, reduction)

    def broadcast_at(self, address: Any, count: int, type_: int, root: int = 0) -> None:
        """broadcast of `count` elements at an address.  Bits are copied, whatever they mean."""
        self._call("corro_broadcast", self._context, address, count, type_, root)

    def _call(self, name: str, *arguments: Any) -> None:
        why = ctypes.c_void_p()
        status = getattr(self._library, name)(*arguments, ctypes.byref(why))
        if status == 0:
            return
        text, rank = self._library.corro_error_text(why).decode(), self._library.corro_error_rank(why)
        self._library.corro_error_free(why)
        raise Error(text or "out of memory", status, rank)


def _elements(buffer: Any) -> Tuple[Any, int, int]:
    """Address, count and type.  The reference keeps the buffer in place for the call."""
    view = memoryview(buffer)
    if view.readonly or not view.c_contiguous or view.format not in _TYPES:
        raise TypeError("a buffer must be writable and contiguous, of integers, floats or bools")
    start = ctypes.byref(ctypes.c_char.from_buffer(view)) if view.nbytes else None
    return start, view.nbytes // view.itemsize, _TYPES[view.format]


def _offer_stacks() -> None:
    """Not from a thread or where the script has a use for the signal itself, and never a reason not to be imported."""
    try:
        if "HOROVOD_RANK" in os.environ and signal.getsignal(DUMP_SIGNAL) == signal.SIG_DFL:
            faulthandler.register(DUMP_SIGNAL, file=2, all_threads=True)
    except (AttributeError, OSError, RuntimeError, ValueError):
        pass


_offer_stacks()
