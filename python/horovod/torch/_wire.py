"""Tensors of every type on a library that reduces float32 and float64.

The results are those that native types would give: integers of any size are exact, also int64, and wrap around as
PyTorch's own do; float16 and bfloat16 are summed in float32 and rounded once.  All functions change a contiguous CPU
tensor in place, and every rank calls them alike.
"""
import hashlib
from typing import Iterator, List, Sequence

import torch

import corro
from horovod.common.basics import HorovodBasics as ops
from horovod.common._missing import NotThereYet

_DIRECT = {torch.float32: corro.FLOAT32, torch.float64: corro.FLOAT64}
_HALVES = (torch.float16, torch.bfloat16)
_NARROW_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32)
_REDUCTIONS = {ops.Sum: corro.SUM, ops.Average: corro.AVERAGE, ops.Min: corro.MIN, ops.Max: corro.MAX}
_OP_NAMES = {ops.Adasum: "Adasum", ops.Product: "Product"}

# How much is packed into one buffer: large enough that the collective's latency does not count, small beside a model.
BUCKET_BYTES = 64 << 20


def check_place(tensor: torch.Tensor) -> None:
    """Where a tensor must be before anything is sent."""
    if tensor.is_sparse:
        raise NotThereYet("sparse tensors are not there yet; use tensor.to_dense()")
    if tensor.device.type != "cpu":
        raise NotThereYet(f"tensors on {tensor.device} are not there yet: Corro has no GPU backend so far; "
                          "use tensor.cpu()")


def check(tensor: torch.Tensor) -> None:
    """What must be true of a tensor before anything is sent."""
    check_place(tensor)
    if not tensor.is_contiguous():
        raise ValueError("Tensor is required to be contiguous.")


def check_reducible(tensor: torch.Tensor, op: int) -> None:
    """What must be true of a tensor and an operation before anything is sent."""
    check(tensor)
    if op in _OP_NAMES:
        raise NotThereYet(f"op={_OP_NAMES[op]} is not there yet; there are Average, Sum, Min and Max")
    if op not in _REDUCTIONS:
        raise ValueError(f"unknown op {op!r}; there are Average, Sum, Min and Max")
    if tensor.dtype == torch.bool and op == ops.Average:
        raise ValueError("bool tensors have no average; op=hvd.Sum is a logical or")
    if tensor.dtype not in (*_DIRECT, *_HALVES, *_NARROW_INTEGERS, torch.int64, torch.bool):
        raise ValueError(f"Tensor type {tensor.type()} is not supported.")


def reduce_(context: corro.Context, tensor: torch.Tensor, op: int) -> None:
    """Replaces each element by the reduction of all ranks' elements there."""
    if tensor.dtype in _DIRECT:
        context.allreduce_at(tensor.data_ptr(), tensor.numel(), _DIRECT[tensor.dtype], _REDUCTIONS[op])
    elif tensor.dtype in _HALVES:
        wide = tensor.float()
        reduce_(context, wide, op)
        tensor.copy_(wide)
    elif tensor.dtype == torch.bool:
        wide = tensor.float()
        reduce_(context, wide, ops.Min if op == ops.Min else ops.Max)
        tensor.copy_(wide != 0)
    else:
        exact = _sum_of_integers if op in (ops.Sum, ops.Average) else _extreme_of_integers
        reduced = exact(context, tensor, op)
        if op == ops.Average:
            reduced = torch.div(reduced, context.size, rounding_mode="trunc")
        tensor.copy_(reduced)


def _halves_of(integers: torch.Tensor) -> List[torch.Tensor]:
    """int64 as high · 2^32 + low: each half is exact in float64, and so is its sum over two million ranks."""
    return [(integers >> 32).double(), (integers & 0xffffffff).double()]


def _whole(high: torch.Tensor, low: torch.Tensor) -> torch.Tensor:
    return (high.long() << 32) + low.long()


def _sum_of_integers(context: corro.Context, tensor: torch.Tensor, _: int) -> torch.Tensor:
    if tensor.dtype in _NARROW_INTEGERS:
        wide = tensor.double()
        reduce_(context, wide, ops.Sum)
        return wide.long()
    both = torch.stack(_halves_of(tensor))
    reduce_(context, both, ops.Sum)
    return _whole(both[0], both[1])


def _extreme_of_integers(context: corro.Context, tensor: torch.Tensor, op: int) -> torch.Tensor:
    if tensor.dtype in _NARROW_INTEGERS:
        wide = tensor.double()
        reduce_(context, wide, op)
        return wide.long()
    high, low = _halves_of(tensor)
    best = high.clone()
    reduce_(context, best, op)
    # Only ranks that have the best high half take part in the comparison of the low halves.
    never = torch.full_like(low, float(1 << 32) if op == ops.Min else -1.0)
    low = torch.where(high == best, low, never)
    reduce_(context, low, op)
    return _whole(best, low)


def scale_(tensor: torch.Tensor, factor: float) -> None:
    """Integers are multiplied in float64 and truncated toward zero; halves in float32 and rounded once."""
    if factor == 1.0:
        return
    if tensor.dtype == torch.bool:
        raise ValueError("bool tensors cannot be scaled")
    if tensor.dtype in _DIRECT:
        tensor.mul_(factor)
    elif tensor.dtype in _HALVES:
        tensor.copy_(tensor.float().mul_(factor))
    else:
        tensor.copy_(tensor.double().mul_(factor).trunc_())


def broadcast_(context: corro.Context, tensor: torch.Tensor, root: int) -> None:
    """Replaces the bytes of every other rank by those of `root`.  The library copies bits, four bytes at a time."""
    size = tensor.numel() * tensor.element_size()
    words = (size + 3) // 4
    if size % 4 == 0 and tensor.data_ptr() % 4 == 0:
        context.broadcast_at(tensor.data_ptr(), words, corro.FLOAT32, root)
        return
    padded = torch.zeros(words * 4, dtype=torch.uint8)
    padded[:size] = _bytes_of(tensor)
    context.broadcast_at(padded.data_ptr(), words, corro.FLOAT32, root)
    _bytes_of(tensor).copy_(padded[:size])


def broadcast_all_(context: corro.Context, tensors: Sequence[torch.Tensor], root: int) -> None:
    """The same for many tensors, contiguous or not, packed into few buffers."""
    for bucket in buckets(tensors):
        packed = torch.cat([_bytes_of(tensor.contiguous()) for tensor in bucket])
        broadcast_(context, packed, root)
        sizes = [tensor.numel() * tensor.element_size() for tensor in bucket]
        for tensor, part in zip(bucket, packed.split(sizes)):
            # A copy, because a part may begin at an address that is odd for the type.
            tensor.copy_(part.clone().view(tensor.dtype).view(tensor.shape))


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(torch.uint8)


def buckets(tensors: Sequence[torch.Tensor], same_type: bool = False) -> Iterator[List[torch.Tensor]]:
    """Neighbours that fit into one buffer, in order; with `same_type`, only those of one type."""
    bucket: List[torch.Tensor] = []
    size = 0
    for tensor in tensors:
        more = tensor.numel() * tensor.element_size()
        if bucket and (size + more > BUCKET_BYTES or (same_type and tensor.dtype != bucket[0].dtype)):
            yield bucket
            bucket, size = [], 0
        bucket.append(tensor)
        size += more
    if bucket:
        yield bucket


def all_have(context: corro.Context, text: str) -> bool:
    """Whether every rank passes the same text; all ranks get the same answer."""
    digest = hashlib.sha256(text.encode()).digest()
    pieces = [float(int.from_bytes(digest[at:at + 4], "big")) for at in range(0, 32, 4)]
    largest = torch.tensor(pieces + [-piece for piece in pieces], dtype=torch.float64)
    reduce_(context, largest, ops.Max)
    return bool((largest[:8] == -largest[8:]).all())
