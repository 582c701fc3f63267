"""init, shutdown, rank and size: what the modules of all frameworks re-export."""
import atexit
import os
from typing import Any, Optional, Sequence

import corro
from horovod.common._missing import NotSupportedYet
from horovod.common.exceptions import HorovodInternalError
from horovod.common.process_sets import global_process_set

_NOT_INITIALIZED = "Horovod has not been initialized; use hvd.init()."


def to_horovod_error(error: corro.Error) -> HorovodInternalError:
    """Converts to the class that scripts catch."""
    out = HorovodInternalError(str(error))
    out.rank = error.rank
    return out


class HorovodBasics:
    """This process's membership in its job, and what the build can do.

    There is one (`basics`), as Horovod has one for each process.  Nothing happens before `init`: importing starts no
    thread and opens no socket, so that a script can still fork.
    """

    Average, Sum, Adasum, Min, Max, Product = range(6)

    def __init__(self) -> None:
        self._context: Optional[corro.Context] = None

    def init(self, comm: Any = None, process_sets: Any = None) -> None:
        """Joins the job that `horovodrun` started; without a launcher this is rank 0 of 1.  Again: does nothing.

        `comm` may be the list of all ranks.  Subsets, communicators of mpi4py and process sets are not supported yet.
        """
        if process_sets:
            raise NotSupportedYet("init(process_sets=…) is not supported yet; there is the global process set only")
        if self._context is not None:
            return
        _check_communicator(comm)
        try:
            context = corro.Context()
        except corro.Error as error:
            raise to_horovod_error(error) from None
        self._context = context
        global_process_set.ranks = list(range(context.size))
        atexit.register(self.shutdown)

    def shutdown(self) -> None:
        """Leaves the job.  `init` may follow.  Without init: does nothing."""
        atexit.unregister(self.shutdown)
        context, self._context = self._context, None
        global_process_set.ranks = None
        if context is not None:
            context.close()

    def is_initialized(self) -> bool:
        return self._context is not None

    @property
    def context(self) -> corro.Context:
        """The context for collectives; before init it raises the class of a failed collective, as Horovod does."""
        if self._context is None:
            raise HorovodInternalError(_NOT_INITIALIZED)
        return self._context

    def _get(self, name: str) -> int:
        if self._context is None:
            raise ValueError(_NOT_INITIALIZED)
        return getattr(self._context, name)

    def rank(self) -> int:
        """This worker's number in the job, from 0."""
        return self._get("rank")

    def size(self) -> int:
        """How many workers the job has."""
        return self._get("size")

    def local_rank(self) -> int:
        """This worker's number on its host: the GPU to use."""
        return self._get("local_rank")

    def local_size(self) -> int:
        """How many workers this host has."""
        return self._get("local_size")

    def cross_rank(self) -> int:
        """This host's number among the hosts that have a worker of the same local rank."""
        return self._get("cross_rank")

    def cross_size(self) -> int:
        """How many hosts have a worker of this local rank."""
        return self._get("cross_size")

    def is_homogeneous(self) -> bool:
        """Whether every host has as many workers as this one."""
        return self.size() == self.local_size() * self.cross_size()

    # What the build can do, as scripts ask for it.  Corro's own runtime takes the place of Gloo; corro.backends() has
    # the truth.

    def mpi_threads_supported(self) -> bool:
        raise ValueError("Horovod MPI is not enabled; Corro does not use MPI.")

    def mpi_enabled(self) -> bool:
        return False

    def mpi_built(self) -> bool:
        return False

    def gloo_enabled(self) -> bool:
        return True

    def gloo_built(self) -> bool:
        return True

    def nccl_built(self) -> int:
        return 0

    def ddl_built(self) -> bool:
        return False

    def ccl_built(self) -> bool:
        return False

    def cuda_built(self) -> bool:
        return False

    def rocm_built(self) -> bool:
        return False


def _check_communicator(comm: Any) -> None:
    if comm is None:
        return
    if not isinstance(comm, Sequence) or not all(isinstance(rank, int) for rank in comm):
        raise NotSupportedYet("init(comm=…) with an MPI communicator is not supported yet; there is no MPI backend")
    if len(comm) and sorted(comm) != list(range(int(os.environ.get("HOROVOD_SIZE", "1")))):
        raise NotSupportedYet("init(comm=[ranks]) with a subset of the ranks is not supported yet")


basics = HorovodBasics()
