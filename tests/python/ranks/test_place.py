"""Who am I, what was built, what is missing."""
import os

import pytest
import torch

import corro
import horovod
import horovod.torch as hvd
from horovod.common.basics import HorovodBasics


def test_the_place_is_the_launchers(rank, size):
    assert (rank, size) == (int(os.environ["HOROVOD_RANK"]), int(os.environ["HOROVOD_SIZE"]))
    assert hvd.local_rank() == int(os.environ["HOROVOD_LOCAL_RANK"])
    assert hvd.local_size() == int(os.environ["HOROVOD_LOCAL_SIZE"])
    assert (hvd.cross_rank(), hvd.cross_size()) == (0, 1)
    assert hvd.is_homogeneous() and hvd.mpi_ops.is_homogeneous()


def test_a_second_init_changes_nothing(size):
    hvd.init()
    hvd.init(comm=list(range(size)))
    assert hvd.is_initialized() and hvd.size() == size


def test_what_was_built():
    assert hvd.gloo_built() is True and hvd.gloo_enabled() is True
    assert hvd.nccl_built() == 0
    assert not any([hvd.mpi_built(), hvd.mpi_enabled(), hvd.ddl_built(), hvd.ccl_built(), hvd.cuda_built(),
                    hvd.rocm_built()])
    assert corro.backends() == ["shared memory", "tcp"]
    with pytest.raises(ValueError):
        hvd.mpi_threads_supported()


def test_versions_and_numbers_of_operations():
    assert horovod.__version__ == "0.28.1"
    assert (hvd.Average, hvd.Sum, hvd.Adasum, hvd.Min, hvd.Max, hvd.Product) == tuple(range(6))


def test_the_global_process_set(rank, size):
    everyone = hvd.global_process_set
    assert (everyone.process_set_id, everyone.ranks) == (0, list(range(size)))
    assert (everyone.rank(), everyone.size(), everyone.included()) == (rank, size, True)
    assert str(everyone) == f"ProcessSet(process_set_id=0, ranks={everyone.ranks}, mpi_comm=None)"


@pytest.mark.parametrize("name", ["allgather", "allreduce_async_", "grouped_allreduce", "join", "SyncBatchNorm",
                                  "elastic", "add_process_set", "start_timeline"])
def test_what_is_not_there_yet_says_so(name):
    assert not hasattr(hvd, name)
    with pytest.raises(NotImplementedError, match=f"horovod.torch.{name} is not supported yet"):
        getattr(hvd, name)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        hvd.nonsense


def test_other_process_sets_are_refused():
    other = hvd.ProcessSet()
    for call in (lambda: hvd.allreduce(torch.ones(1), process_set=other), lambda: hvd.barrier(other),
                 lambda: hvd.broadcast(torch.ones(1), 0, process_set=other),
                 lambda: hvd.broadcast_object(1, process_set=other),
                 lambda: HorovodBasics().init(process_sets=[other])):
        with pytest.raises(NotImplementedError, match="process set"):
            call()


def test_frameworks_that_are_not_there_cannot_be_imported():
    for name in ("tensorflow", "keras", "mxnet", "spark", "ray"):
        with pytest.raises(ImportError, match=f"horovod.{name} is not supported yet"):
            __import__(f"horovod.{name}")
