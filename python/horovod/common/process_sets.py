"""Process sets.  So far there is one: all ranks."""
from typing import Any, List, Optional

from horovod.common._missing import NotSupportedYet, missing


class ProcessSet:
    """A set of ranks.  `global_process_set` is the only one that collectives take so far."""

    process_set_id: Optional[int] = None
    ranks: Optional[List[int]] = None
    mpi_comm: Any = None

    def size(self) -> Optional[int]:
        """How many ranks it has; None if it is not registered."""
        return None if self.ranks is None else _basics().size()

    def rank(self) -> Optional[int]:
        """This worker's rank in it; None if it is not registered."""
        return None if self.ranks is None else _basics().rank()

    def included(self) -> Optional[bool]:
        """Whether this worker is in it; None if its ranks are not known."""
        return None if self.ranks is None else _basics().rank() in self.ranks

    def __str__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks}, mpi_comm={self.mpi_comm})"


def _basics() -> Any:
    from horovod.common.basics import basics
    return basics


global_process_set = ProcessSet()
global_process_set.process_set_id = 0


def require_global(process_set: ProcessSet) -> None:
    """Raises for any other set."""
    if process_set is not global_process_set:
        raise NotSupportedYet("process sets other than global_process_set are not supported yet")


__getattr__ = missing("horovod.common.process_sets", {
    "add_process_set": "process sets other than global_process_set",
    "remove_process_set": "process sets other than global_process_set",
})
