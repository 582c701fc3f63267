"""Collectives on PyTorch tensors.

A collective is called by every rank, in the same order and with tensors of the same type and shape.  The ranks compare
this first, in one small collective, until the library does so itself: a mismatch raises on every rank, and the job can
go on.  `name` is accepted for compatibility; calls are matched by their order.
"""
from contextlib import contextmanager
from typing import Any, Iterator, Optional, Tuple

import torch

import corro
from horovod.common.basics import basics as _basics
from horovod.common.basics import to_horovod_error
from horovod.common.exceptions import HorovodInternalError
from horovod.common.process_sets import ProcessSet, global_process_set, require_global
from horovod.common.util import get_average_backwards_compatibility_fun
from horovod.torch import _wire
from horovod.torch.compression import Compression

init = _basics.init
shutdown = _basics.shutdown
is_initialized = _basics.is_initialized
rank = _basics.rank
size = _basics.size
local_rank = _basics.local_rank
local_size = _basics.local_size
cross_rank = _basics.cross_rank
cross_size = _basics.cross_size
is_homogeneous = _basics.is_homogeneous
mpi_threads_supported = _basics.mpi_threads_supported
mpi_enabled = _basics.mpi_enabled
mpi_built = _basics.mpi_built
gloo_enabled = _basics.gloo_enabled
gloo_built = _basics.gloo_built
nccl_built = _basics.nccl_built
ddl_built = _basics.ddl_built
ccl_built = _basics.ccl_built
cuda_built = _basics.cuda_built
rocm_built = _basics.rocm_built

Average = _basics.Average
Sum = _basics.Sum
Adasum = _basics.Adasum
Min = _basics.Min
Max = _basics.Max
Product = _basics.Product

_resolve_op = get_average_backwards_compatibility_fun(_basics)


@contextmanager
def collective() -> Iterator[corro.Context]:
    """The job's context, without autograd; converts errors to the class that scripts catch."""
    context = _basics.context
    try:
        with torch.no_grad():
            yield context
    except corro.Error as error:
        raise to_horovod_error(error) from None


def _reduce_(tensor: torch.Tensor, op: int, prescale_factor: float, postscale_factor: float,
             process_set: ProcessSet) -> None:
    require_global(process_set)
    with collective() as context:
        data = tensor.detach()  # shares memory; a leaf that requires a gradient can be modified through it
        _wire.check_reducible(data, op)
        _wire.check_same_on_all_ranks(context, [
            f"allreduce({_wire.describe(data)}, op {op}, scale factors {prescale_factor} and {postscale_factor})"])
        reduce_alike_(data, op, prescale_factor, postscale_factor)


def reduce_alike_(data: torch.Tensor, op: int, prescale_factor: float, postscale_factor: float) -> None:
    """In place, for callers that know that all ranks call it with the same dtype, size and operation."""
    with collective() as context:
        _wire.scale_(data, prescale_factor)
        _wire.reduce_(context, data, op)
        _wire.scale_(data, postscale_factor)


class _Allreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, op: int, prescale_factor: float, postscale_factor: float,
                process_set: ProcessSet) -> torch.Tensor:
        ctx.arguments = op, prescale_factor, postscale_factor, process_set
        _wire.check_reducible(tensor, op)
        output = tensor.detach().clone()
        _reduce_(output, *ctx.arguments)
        return output

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        return (_Allreduce.apply(grad.contiguous(), *ctx.arguments), None, None, None, None)


def allreduce(tensor: torch.Tensor, average: Optional[bool] = None, name: Optional[str] = None,
              compression: Any = Compression.none, op: Optional[int] = None, prescale_factor: float = 1.0,
              postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """The reduction of all ranks' tensors, by default their average, as a new tensor.  Differentiable."""
    op = _resolve_op(op, average)
    compressed, ctx = compression.compress(tensor)
    reduced = _Allreduce.apply(compressed, op, prescale_factor, postscale_factor, process_set)
    return compression.decompress(reduced, ctx)


def allreduce_(tensor: torch.Tensor, average: Optional[bool] = None, name: Optional[str] = None,
               op: Optional[int] = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
               process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """The same in place; returns the tensor that it was given."""
    _reduce_(tensor, _resolve_op(op, average), prescale_factor, postscale_factor, process_set)
    return tensor


class _Broadcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, root_rank: int, process_set: ProcessSet) -> torch.Tensor:
        ctx.root_rank, ctx.process_set = root_rank, process_set
        _wire.check(tensor)
        return broadcast_(tensor.detach().clone(), root_rank, process_set=process_set)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        reduced = _Allreduce.apply(grad.contiguous(), Average, 1.0, 1.0, ctx.process_set)
        return (reduced if rank() == ctx.root_rank else torch.zeros_like(reduced)), None, None


def broadcast(tensor: torch.Tensor, root_rank: int, name: Optional[str] = None,
              process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """The tensor of rank `root_rank`, as a new tensor, on every rank.  Differentiable."""
    return _Broadcast.apply(tensor, root_rank, process_set)


def broadcast_(tensor: torch.Tensor, root_rank: int, name: Optional[str] = None,
               process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """The same in place; returns the tensor that it was given."""
    require_global(process_set)
    with collective() as context:
        data = tensor.detach()
        _wire.check(data)
        check_root(root_rank)
        _wire.check_same_on_all_ranks(context, [f"broadcast({_wire.describe(data)}, root rank {root_rank})"])
        _wire.broadcast_(context, data, root_rank)
    return tensor


def check_root(root_rank: int) -> None:
    """Raises if there is no such rank."""
    if not 0 <= root_rank < size():
        raise ValueError(f"root_rank {root_rank} is not a rank of this job, which has 0 to {size() - 1}")


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Returns when every rank has called it."""
    require_global(process_set)
    with collective() as context:
        _wire.check_same_on_all_ranks(context, ["barrier()"])
        context.barrier()
