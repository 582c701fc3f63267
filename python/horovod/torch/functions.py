"""What a script sends around besides gradients: parameters, the optimizer's state, any object."""
import collections
import io
from typing import Any, Iterable, List, Mapping, Optional, Tuple, Union

import torch

from horovod.common.exceptions import HorovodInternalError
from horovod.common.process_sets import ProcessSet, global_process_set, require_global
from horovod.torch import _wire, mpi_ops

_Parameters = Union[Mapping[str, torch.Tensor], Iterable[Tuple[str, torch.Tensor]], Iterable[torch.Tensor]]


def broadcast_parameters(params: _Parameters, root_rank: int) -> None:
    """Gives every rank the values that rank `root_rank` has, as after loading a checkpoint there.

    `params` is `model.state_dict()`, `model.named_parameters()` or a list of tensors.  They change in place.
    """
    named = _named(params)
    mpi_ops.check_root(root_rank)
    with mpi_ops.collective() as context:
        tensors = [tensor.detach() for _, tensor in named]
        for tensor in tensors:
            _wire.check_place(tensor)
        check_same("broadcast_parameters", [_described(*entry) for entry in named])
        _wire.broadcast_all_(context, tensors, root_rank)


def _named(params: _Parameters) -> List[Tuple[str, torch.Tensor]]:
    """In an order that all ranks share.  Entries of a state that are no tensors are left alone."""
    if isinstance(params, collections.abc.Mapping):
        return [(str(name), value) for name, value in sorted(params.items(), key=lambda entry: str(entry[0]))
                if torch.is_tensor(value)]
    if isinstance(params, (str, bytes)) or not isinstance(params, collections.abc.Iterable):
        raise ValueError(f"invalid params of type: {type(params)}; use model.state_dict() or a list of tensors")
    out = []
    for index, entry in enumerate(params):
        name, tensor = entry if isinstance(entry, tuple) and len(entry) == 2 else (str(index), entry)
        if tensor is None:
            continue
        if not torch.is_tensor(tensor):
            raise ValueError(f"invalid params: entry {name} is of type {type(tensor)} and not a tensor")
        out.append((str(name), tensor))
    return out


def _described(name: str, tensor: torch.Tensor) -> str:
    return f"{name} ({str(tensor.dtype).replace('torch.', '')}, {list(tensor.shape)})"


def check_same(what: str, description: List[str]) -> None:
    """Raises on every rank if the ranks do not have the same list; the text says what rank 0 has instead."""
    with mpi_ops.collective() as context:
        if _wire.all_have(context, "\n".join(description)):
            return
    first = broadcast_object(description, 0)
    pairs = zip(first + ["nothing"] * len(description), description + ["nothing"] * len(first))
    difference = next(((theirs, ours) for theirs, ours in pairs if theirs != ours), None)
    if difference is None:
        detail = "this rank has the same as rank 0, another has not"
    else:
        detail = f"rank 0 has {difference[0]} where this rank has {difference[1]}"
    raise HorovodInternalError(f"{what}: the ranks do not have the same tensors: {detail}")


def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root_rank: int,
                              model: Optional[torch.nn.Module] = None) -> None:
    """Gives every rank the options (learning rate, …) and the state (momenta, …) that rank `root_rank` has.

    As scripts expect of Horovod, an optimizer that has made no step finds a gradient of zero in each parameter
    afterwards.
    """
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("cannot broadcast torch.optim.LBFGS state: its history is not a state of parameters")
    mpi_ops.check_root(root_rank)
    if not optimizer.state:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.requires_grad:
                    parameter.grad = torch.zeros_like(parameter)
    # As an object: the root's state decides how many entries there are, and of which types.
    at_root = optimizer.state_dict() if mpi_ops.rank() == root_rank else None
    state = broadcast_object(at_root, root_rank)
    if mpi_ops.rank() == root_rank:
        return
    mine = [len(group["params"]) for group in optimizer.param_groups]
    roots = [len(group["params"]) for group in state["param_groups"]]
    if mine != roots:
        raise HorovodInternalError(f"broadcast_optimizer_state: rank {root_rank} has parameter groups of {roots} "
                                   f"parameters, this rank of {mine}")
    optimizer.load_state_dict(state)


def broadcast_object(obj: Any, root_rank: int = 0, name: Optional[str] = None,
                     process_set: ProcessSet = global_process_set) -> Any:
    """The object of rank `root_rank` on every rank.  It travels as cloudpickle makes it."""
    import cloudpickle

    require_global(process_set)
    mpi_ops.check_root(root_rank)
    is_root = mpi_ops.rank() == root_rank
    data = bytearray(cloudpickle.dumps(obj)) if is_root else bytearray()
    size = mpi_ops.broadcast_(torch.tensor(len(data), dtype=torch.int64), root_rank)
    buffer = torch.frombuffer(data, dtype=torch.uint8) if is_root else torch.empty(int(size), dtype=torch.uint8)
    mpi_ops.broadcast_(buffer, root_rank)
    return obj if is_root else cloudpickle.load(io.BytesIO(_as_bytes(buffer)))


def _as_bytes(buffer: torch.Tensor) -> bytes:
    """Without NumPy, which need not be there."""
    import ctypes
    return ctypes.string_at(buffer.data_ptr(), buffer.numel())
