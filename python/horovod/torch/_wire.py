"""Collectives on tensors of every dtype.

Integers are exact and wrap around as in PyTorch, and their average is truncated toward zero; float16 and bfloat16 are
summed in float32.  Each function modifies contiguous CPU tensors in place and must be called by every rank with the
same arguments.
"""
import array
import ctypes
import hashlib
import struct
from typing import Iterator, List, Sequence

import torch

import corro
from horovod.common.basics import HorovodBasics as ops
from horovod.common._missing import NotSupportedYet
from horovod.common.exceptions import HorovodInternalError

_TYPES = {torch.float32: corro.FLOAT32, torch.float64: corro.FLOAT64, torch.float16: corro.FLOAT16,
          torch.bfloat16: corro.BFLOAT16, torch.uint8: corro.UINT8, torch.int8: corro.INT8, torch.int16: corro.INT16,
          torch.int32: corro.INT32, torch.int64: corro.INT64, torch.bool: corro.BOOL}
for _name in ("uint16", "uint32", "uint64"):  # PyTorch 2.3 and newer
    if hasattr(torch, _name):
        _TYPES[getattr(torch, _name)] = getattr(corro, _name.upper())
_REDUCTIONS = {ops.Sum: corro.SUM, ops.Average: corro.AVERAGE, ops.Min: corro.MIN, ops.Max: corro.MAX,
               ops.Product: corro.PRODUCT}

# Size of a packing buffer: large enough to hide the latency of a collective, small compared with a model.
BUCKET_BYTES = 64 << 20


def check_place(tensor: torch.Tensor) -> None:
    """Raises for a sparse tensor or one that is not in CPU memory."""
    if tensor.is_sparse:
        raise NotSupportedYet("sparse tensors are not supported yet; use tensor.to_dense()")
    if tensor.device.type != "cpu":
        raise NotSupportedYet(f"tensors on {tensor.device} are not supported yet: Corro has no GPU backend so far; "
                              "use tensor.cpu()")


def check(tensor: torch.Tensor) -> None:
    """Raises for a tensor that cannot be sent.  Nothing has been sent at this point."""
    check_place(tensor)
    if not tensor.is_contiguous():
        raise ValueError("Tensor is required to be contiguous.")


def check_reducible(tensor: torch.Tensor, op: int) -> None:
    """Raises for a combination of dtype and operation that is not supported."""
    check(tensor)
    if op == ops.Adasum:
        raise NotSupportedYet("op=Adasum is not supported yet; there are Average, Sum, Min, Max and Product")
    if op not in _REDUCTIONS:
        raise ValueError(f"unknown op {op!r}; there are Average, Sum, Min, Max and Product")
    if tensor.dtype == torch.bool and op == ops.Average:
        raise ValueError("bool tensors have no average; op=hvd.Sum is a logical or")
    if tensor.dtype not in _TYPES:
        raise ValueError(f"Tensor type {tensor.type()} is not supported.")


def reduce_(context: corro.Context, tensor: torch.Tensor, op: int) -> None:
    """Replaces each element by the reduction of all ranks' elements there."""
    context.allreduce_at(tensor.data_ptr(), tensor.numel(), _TYPES[tensor.dtype], _REDUCTIONS[op])


def scale_(tensor: torch.Tensor, factor: float) -> None:
    """Integers are multiplied in float64 and truncated toward zero; halves in float32 and rounded once."""
    if factor == 1.0:
        return
    if tensor.dtype == torch.bool:
        raise ValueError("bool tensors cannot be scaled")
    if tensor.dtype in (torch.float32, torch.float64):
        tensor.mul_(factor)
    elif tensor.dtype.is_floating_point:
        tensor.copy_(tensor.float().mul_(factor))
    else:
        tensor.copy_(tensor.double().mul_(factor).trunc_())


def broadcast_(context: corro.Context, tensor: torch.Tensor, root: int) -> None:
    """Copies the bytes of `root` to every other rank; the library does not interpret them."""
    context.broadcast_at(tensor.data_ptr(), tensor.numel() * tensor.element_size(), corro.UINT8, root)


def broadcast_all_(context: corro.Context, tensors: Sequence[torch.Tensor], root: int) -> None:
    """The same for many tensors, contiguous or not, packed into few buffers."""
    for bucket in buckets(tensors):
        packed = torch.cat([_bytes_of(tensor.contiguous()) for tensor in bucket])
        broadcast_(context, packed, root)
        sizes = [tensor.numel() * tensor.element_size() for tensor in bucket]
        for tensor, part in zip(bucket, packed.split(sizes)):
            # Copied, because a part may start at an address that is not aligned for the dtype.
            tensor.copy_(part.clone().view(tensor.dtype).view(tensor.shape))


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(torch.uint8)


def buckets(tensors: Sequence[torch.Tensor], same_type: bool = False) -> Iterator[List[torch.Tensor]]:
    """Splits the list, in order, into runs that fit into one buffer; with `same_type`, each run has one dtype."""
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


def broadcast_bytes(context: corro.Context, data: bytes, root: int) -> bytes:
    """The bytes of `root`, of any length; what other ranks pass is ignored."""
    size = torch.tensor(len(data), dtype=torch.int64)
    broadcast_(context, size, root)
    buffer = torch.zeros(int(size), dtype=torch.uint8)
    if context.rank == root:
        ctypes.memmove(buffer.data_ptr(), data, len(data))
    broadcast_(context, buffer, root)
    return ctypes.string_at(buffer.data_ptr(), buffer.numel())  # without NumPy, which is optional


def describe(tensor: torch.Tensor) -> str:
    """Type and shape, for messages and for the comparison between ranks."""
    return f"{str(tensor.dtype).replace('torch.', '')} {list(tensor.shape)}"


def check_same_on_all_ranks(context: corro.Context, description: Sequence[str]) -> None:
    """Raises on every rank if the descriptions differ between ranks; the text shows the first difference from rank 0.

    Nothing else has been sent at this point, so that the job can go on.
    """
    if context.size == 1 or _same_on_all_ranks(context, "\n".join(description)):
        return
    first, mine = broadcast_bytes(context, "\n".join(description).encode(), 0).decode().split("\n"), list(description)
    pairs = zip(first + ["nothing"] * len(mine), mine + ["nothing"] * len(first))
    difference = next((pair for pair in pairs if pair[0] != pair[1]), None)
    detail = "another rank differs from rank 0 and this one" if difference is None else \
        f"rank 0 has {difference[0]} where rank {context.rank} has {difference[1]}"
    raise HorovodInternalError(f"Mismatched collectives: {detail}")


def _same_on_all_ranks(context: corro.Context, text: str) -> bool:
    """Whether every rank passes the same text.  The result is the same on every rank."""
    pieces = struct.unpack(">4I", hashlib.sha256(text.encode()).digest()[:16])
    largest_and_smallest = array.array("d", [*pieces, *(-piece for piece in pieces)])
    context.allreduce(largest_and_smallest, corro.MAX)
    return all(largest_and_smallest[at] == -largest_and_smallest[at + 4] for at in range(4))
