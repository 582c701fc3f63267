"""The errors that scripts catch."""
from typing import Optional


class HorovodInternalError(RuntimeError):
    """A collective that failed.  The text says which rank is to blame, on which host and why.

    `rank` is that rank, or -1 if there is none in particular.
    """

    rank = -1


class HostsUpdatedInterrupt(RuntimeError):
    """The hosts of an elastic job have changed.  With `skip_sync` the state need not be broadcast again."""

    def __init__(self, skip_sync: bool = False) -> None:
        super().__init__()
        self.skip_sync = skip_sync


def get_version_mismatch_message(name: str, version: str, installed_version: Optional[str]) -> str:
    return (f"this was built for {name} {version}, and {installed_version} is installed; "
            f"install {name} {version}, or install this again")


class HorovodVersionMismatchError(ImportError):
    """A framework of another version than the one that was compiled against.  Corro compiles against none."""

    def __init__(self, name: str, version: str, installed_version: Optional[str]) -> None:
        super().__init__(get_version_mismatch_message(name, version, installed_version))
        self.name, self.version, self.installed_version = name, version, installed_version
