"""python -m corro.doctor: what of Corro is found in this Python, and what is in its way.

Exits with 1 if workers could not use it.  `horovodrun doctor` looks at the hosts of a job.
"""
import importlib.util
import os
import platform
import shutil
import sys
import sysconfig
from typing import Iterator, List, Optional, Tuple

Finding = Tuple[bool, str, str]  # whether it is well, what was looked at, what was found


def horovodrun() -> Optional[str]:
    """Beside this Python, in the scripts of its schemes, or on PATH."""
    folders = [os.path.dirname(sys.executable)]
    folders += [sysconfig.get_path("scripts", scheme) for scheme in sysconfig.get_scheme_names()
                if scheme.startswith("posix")]
    return shutil.which("horovodrun", path=os.pathsep.join(folders)) or shutil.which("horovodrun")


def _distributions(name: str) -> List[Tuple[str, str]]:
    """(version, folder) of what is installed under a name."""
    from importlib import metadata
    found = []
    for one in metadata.distributions(name=name):
        found.append((one.version, str(one.locate_file(""))))
    return found


def _library() -> Iterator[Finding]:
    from corro import _library as library
    path = library.find()
    try:
        version = library.load().corro_version().decode()
    except OSError as error:
        looked = ", ".join(map(str, library.candidates()))
        yield False, "libcorro.so", f"{error}; looked for in CORRO_LIBRARY, {looked} and by the system's loader"
        return
    yield True, "libcorro.so", f"{version}, {path}"
    try:
        import corro
        with corro.Context() as job:
            yield True, "a context", f"rank {job.rank} of {job.size}; tensors go by {', '.join(corro.backends())}"
    except RuntimeError as error:
        yield False, "a context", str(error)


def _program() -> Iterator[Finding]:
    found, first = horovodrun(), shutil.which("horovodrun")
    if found is None:
        yield False, "horovodrun", "not found: neither in this Python's scripts nor on PATH"
    elif first is None:
        yield True, "horovodrun", f"{found} (its folder is not on PATH)"
    elif not os.path.samefile(first, found):
        yield False, "horovodrun", f"{found}, but PATH has {first} before it"
    else:
        yield True, "horovodrun", found


def _package(name: str, needed_for: str) -> Iterator[Finding]:
    """From its metadata: to import a framework takes seconds."""
    if importlib.util.find_spec(name) is None:
        yield True, name, f"not installed; {needed_for} needs it"
        return
    versions = [version for version, _ in _distributions(name)]
    yield True, name, versions[0] if versions else "found, without metadata"


def _horovod() -> Iterator[Finding]:
    spec = importlib.util.find_spec("horovod")
    if spec is None or not spec.origin:
        yield False, "horovod", "the package is not there: install corro again"
        return
    here = os.path.dirname(os.path.abspath(__file__))
    ours = os.path.samefile(os.path.dirname(os.path.dirname(spec.origin)), os.path.dirname(here))
    foreign = [f"{version} in {folder}" for version, folder in _distributions("horovod")]
    if foreign or not ours:
        yield (False, "horovod", f"{spec.origin} is imported; the distribution horovod {', '.join(foreign) or '?'} is "
               "installed too, and both own the package: pip uninstall -y horovod corro, then install corro again")
    else:
        yield True, "horovod", f"{spec.origin}, no other distribution of that name"


def findings() -> Iterator[Finding]:
    yield True, "Python", f"{platform.python_version()}, {sys.executable}"
    libc, version = platform.libc_ver()
    yield True, libc or "libc", version or "unknown"
    yield from _library()
    yield from _program()
    yield from _horovod()
    yield from _package("cloudpickle", "broadcast_object")
    yield from _package("torch", "horovod.torch")
    yield from _package("numpy", "examples/numpy_allreduce.py")


def main() -> int:
    well = True
    for good, what, text in findings():
        print(f"{'  ok ' if good else ' BAD '} {what:12} {text}")
        well = well and good
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
