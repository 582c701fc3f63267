"""Distributed training with PyTorch: Horovod's interface on Corro's runtime.

    import horovod.torch as hvd

    hvd.init()
    model = ...
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * hvd.size())
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)

and `horovodrun -np 4 python train.py`.
"""
try:
    import torch as _torch
except ModuleNotFoundError as _error:
    if _error.name != "torch":
        raise
    raise ImportError("horovod.torch needs PyTorch, which is not installed here: pip install torch") from None

from horovod.common._missing import missing as _missing
from horovod.common.exceptions import HorovodInternalError
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.torch import mpi_ops
from horovod.torch.compression import Compression
from horovod.torch.functions import broadcast_object, broadcast_optimizer_state, broadcast_parameters
from horovod.torch.mpi_ops import (
    Adasum, Average, Max, Min, Product, Sum, allreduce, allreduce_, barrier, broadcast, broadcast_, ccl_built,
    cross_rank, cross_size, cuda_built, ddl_built, gloo_built, gloo_enabled, init, is_homogeneous, is_initialized,
    local_rank, local_size, mpi_built, mpi_enabled, mpi_threads_supported, nccl_built, rank, rocm_built, shutdown, size)
from horovod.torch.optimizer import DistributedOptimizer

_ASYNCHRONOUS, _GROUPED, _SETS = "asynchronous collectives", "grouped collectives", "process sets"
_OTHERS = "collectives other than allreduce, broadcast and barrier in Python"

__getattr__ = _missing("horovod.torch", {
    **dict.fromkeys(["allreduce_async", "allreduce_async_", "broadcast_async", "broadcast_async_", "poll",
                     "synchronize"], _ASYNCHRONOUS),
    **dict.fromkeys(["grouped_allreduce", "grouped_allreduce_", "grouped_allreduce_async", "grouped_allreduce_async_",
                     "grouped_allgather", "grouped_allgather_async", "grouped_reducescatter",
                     "grouped_reducescatter_async"], _GROUPED),
    **dict.fromkeys(["allgather", "allgather_async", "allgather_object", "alltoall", "alltoall_async", "reducescatter",
                     "reducescatter_async", "join"], _OTHERS),
    **dict.fromkeys(["add_process_set", "remove_process_set"], _SETS),
    **dict.fromkeys(["start_timeline", "stop_timeline"], "the timeline"),
    "sparse_allreduce_async": "sparse tensors",
    "SyncBatchNorm": "SyncBatchNorm",
    "elastic": "elastic jobs",
})
