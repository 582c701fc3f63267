"""Broadcast of parameters, optimizer state and Python objects."""
import collections.abc
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
        _wire.check_same_on_all_ranks(context, [
            f"broadcast_parameters(root rank {root_rank})", *(f"{name} ({_wire.describe(t)})" for name, t in named)])
        _wire.broadcast_all_(context, tensors, root_rank)


def _named(params: _Parameters) -> List[Tuple[str, torch.Tensor]]:
    """The tensors with their names, in the same order on all ranks.  Other entries of a state dict are ignored."""
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


def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root_rank: int,
                              model: Optional[torch.nn.Module] = None) -> None:
    """Gives every rank the options (learning rate, …) and the state (momenta, …) that rank `root_rank` has.

    An optimizer without state leaves a zero gradient in each parameter that requires one, as Horovod does; scripts
    rely on it.
    """
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("cannot broadcast torch.optim.LBFGS state: its history is not a state of parameters")
    mpi_ops.check_root(root_rank)
    if not optimizer.state:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.requires_grad:
                    parameter.grad = torch.zeros_like(parameter)
    # Sent as an object, because number and types of the entries are those of the root.
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
    data = cloudpickle.dumps(obj) if is_root else b""
    with mpi_ops.collective() as context:
        _wire.check_same_on_all_ranks(context, [f"broadcast_object(root rank {root_rank})"])
        data = _wire.broadcast_bytes(context, data, root_rank)
    return obj if is_root else cloudpickle.loads(data)
