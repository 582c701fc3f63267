"""Public names of Horovod that Corro does not support yet."""
from typing import Any, Callable, Dict


class NotSupportedYet(NotImplementedError, AttributeError):
    """A part of Horovod's interface that Corro does not support yet.

    Also an AttributeError, so that `hasattr` returns False and `getattr` its default.
    """


def missing(module: str, names: Dict[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a module.  `names`: the missing capability behind each name."""

    def __getattr__(name: str) -> Any:
        if name in names:
            raise NotSupportedYet(f"{module}.{name} is not supported yet: Corro does not have {names[name]} so far")
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return __getattr__
