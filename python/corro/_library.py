"""libcorro.so: where it is, and its functions with their types (runtime/capi/corro/corro.h)."""
import ctypes
import os
import sysconfig
from pathlib import Path
from typing import List, Optional

NAME = "libcorro.so"
_loaded: Optional[ctypes.CDLL] = None


def candidates() -> List[Path]:
    """Where the library may be, best first: beside this package, in the environment, in a checkout's build."""
    here = Path(__file__).resolve().parent
    return [here / NAME, Path(sysconfig.get_path("platlib")) / "corro" / NAME,
            here.parent.parent / "build" / "release" / "lib" / NAME]


def find() -> str:
    """What CORRO_LIBRARY says, or the first candidate that exists, or the plain name: the system's loader searches."""
    return os.environ.get("CORRO_LIBRARY") or next((str(path) for path in candidates() if path.exists()), NAME)


def load() -> ctypes.CDLL:
    """The library, opened once.  ctypes releases the interpreter lock for the time of each call."""
    global _loaded
    if _loaded is None:
        _loaded = _declare(ctypes.CDLL(find()))
    return _loaded


def _declare(library: ctypes.CDLL) -> ctypes.CDLL:
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
        signatures["corro_" + place] = (integer, pointer)
    for name, (result, *arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
