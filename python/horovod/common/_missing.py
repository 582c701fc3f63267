"""Public names of Horovod that Corro does not have yet: asked for, they say so."""
from typing import Any, Callable, Dict


class NotThereYet(NotImplementedError, AttributeError):
    """A part of Horovod's interface that Corro does not have yet.

    An AttributeError too, so that `hasattr` and `getattr` with a default answer as they should.
    """


def missing(module: str, names: Dict[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a module: `names` has the capability that stands behind each name."""

    def __getattr__(name: str) -> Any:
        if name in names:
            raise NotThereYet(f"{module}.{name} is not there yet: Corro does not have {names[name]} so far")
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return __getattr__
