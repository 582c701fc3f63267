"""DistributedOptimizer: an optimizer whose step uses the gradients of all ranks."""
import warnings
import weakref
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

import torch

from horovod.common._missing import NotSupportedYet
from horovod.common.process_sets import ProcessSet, global_process_set, require_global
from horovod.torch import _wire, mpi_ops
from horovod.torch.compression import Compression

_NamedParameters = Iterable[Tuple[str, torch.Tensor]]
_Groups = Union[None, int, Sequence[Sequence[torch.Tensor]]]


class _DistributedOptimizer(torch.optim.Optimizer):
    """First base class of what `DistributedOptimizer` returns; the user's optimizer class is the second.

    Hooks count the backward passes of each parameter.  `synchronize` packs the gradients in parameter order, which is
    the same on every rank, and reduces them.
    """

    def __init__(self, params: Any, named_parameters: Optional[_NamedParameters], compression: Any,
                 backward_passes_per_step: int = 1, op: int = mpi_ops.Average, gradient_predivide_factor: float = 1.0,
                 groups: _Groups = None, sparse_as_dense: bool = False,
                 process_set: ProcessSet = global_process_set) -> None:
        super().__init__(params)
        require_global(process_set)
        parameters = [parameter for group in self.param_groups for parameter in group["params"]]
        self._parameter_names = _names(self.param_groups, parameters, named_parameters)
        _check_groups(groups)
        self._compression, self.op = compression, op
        self.gradient_predivide_factor, self.sparse_as_dense = gradient_predivide_factor, sparse_as_dense
        self.backward_passes_per_step = backward_passes_per_step
        self.process_set = process_set
        self._passes_left: Dict[torch.Tensor, int] = {}  # for each parameter that is reduced; empty with one worker
        self._pending: Dict[torch.Tensor, None] = {}  # gradients not reduced yet, in order of arrival
        self._checked = self._synchronized = False
        self._should_synchronize = True
        self._communicates = mpi_ops.size() > 1
        self._register_parameters()

    def _register_parameters(self) -> None:
        """Registers hooks for parameters that require a gradient, also those unfrozen or added since the last call."""
        if not self._communicates:
            return
        for group_index, group in enumerate(self.param_groups):
            for index, parameter in enumerate(group["params"]):
                if parameter.requires_grad and parameter not in self._passes_left:
                    self._parameter_names.setdefault(parameter, f"allreduce.noname.{group_index}.{index}")
                    self._passes_left[parameter] = self.backward_passes_per_step
                    _after_accumulation(parameter, _weakly(self._on_gradient))
                    self._checked = False

    @staticmethod
    def find_duplicates(lst: Iterable[Any]) -> set:
        """The elements that are there more than once."""
        seen: set = set()
        return {entry for entry in lst if entry in seen or seen.add(entry)}  # type: ignore[func-returns-value]

    def set_backward_passes_per_step(self, passes: int) -> None:
        """How many backward passes add up before `step` or `synchronize`."""
        _check_passes(passes)
        self.backward_passes_per_step = passes
        self._reset_passes()

    def load_state_dict(self, *args: Any, **kwargs: Any) -> None:
        """Local.  Discards the record of gradients that were accumulated but not reduced."""
        self._pending.clear()
        self._reset_passes()
        self._synchronized = False
        super().load_state_dict(*args, **kwargs)

    def _reset_passes(self) -> None:
        self._passes_left = dict.fromkeys(self._passes_left, self.backward_passes_per_step)

    def _on_gradient(self, parameter: torch.Tensor) -> None:
        if self._passes_left[parameter] <= 0:
            raise AssertionError(
                "Gradients were computed more than backward_passes_per_step times before call to step(). "
                "Increase backward_passes_per_step to accumulate gradients locally.")
        self._passes_left[parameter] -= 1
        self._pending[parameter] = None

    def synchronize(self) -> None:
        """Reduces the gradients of all parameters over all ranks; those without a gradient count as zero.

        `step` does this by itself.  To work on reduced gradients before the step, as to clip them:

            optimizer.synchronize()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            with optimizer.skip_synchronize():
                optimizer.step()
        """
        self._register_parameters()
        if self._passes_left:
            self._check_ranks_once()
            with torch.no_grad():
                self._reduce_gradients(list(self._passes_left))
        self._pending.clear()
        self._reset_passes()
        self._synchronized = True

    def _check_ranks_once(self) -> None:
        """Packed gradients of different models could have the same number of elements, which is not detected otherwise."""
        if self._checked:
            return
        with mpi_ops.collective() as context:
            _wire.check_same_on_all_ranks(context, ["DistributedOptimizer.synchronize()", *(
                f"{self._parameter_names[parameter]} ({_wire.describe(parameter)})" for parameter in self._passes_left)])
        self._checked = True

    def _reduce_gradients(self, parameters: List[torch.Tensor]) -> None:
        # Compressors get tensors one by one, because they may depend on shapes.
        dense = [self._dense_gradient(parameter) for parameter in parameters]
        compressed, contexts = zip(*(self._compression.compress(gradient) for gradient in dense))
        reduced = self._reduced(compressed)
        for parameter, gradient, tensor, context in zip(parameters, dense, reduced, contexts):
            out = self._compression.decompress(tensor, context)
            if parameter.grad.is_sparse:
                parameter.grad = out.reshape(gradient.shape).to_sparse(parameter.grad.sparse_dim())
            elif out.data_ptr() != parameter.grad.data_ptr():
                parameter.grad.copy_(out.reshape(gradient.shape))

    def _dense_gradient(self, parameter: torch.Tensor) -> torch.Tensor:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        if not parameter.grad.is_sparse:
            return parameter.grad
        if not self.sparse_as_dense:
            raise NotSupportedYet(f"parameter {self._parameter_names[parameter]} has a sparse gradient, which is not "
                                  "supported yet; use DistributedOptimizer(…, sparse_as_dense=True)")
        return parameter.grad.to_dense()

    def _reduced(self, tensors: Sequence[torch.Tensor]) -> Iterator[torch.Tensor]:
        """The reduced tensors, in order.  Tensors of one dtype share a collective."""
        average = self.op == mpi_ops.Average
        scales = (1.0 / self.gradient_predivide_factor, self.gradient_predivide_factor) if average else (1.0, 1.0)
        for bucket in _wire.buckets(tensors, same_type=True):
            for tensor in bucket:
                _wire.check_place(tensor)
            in_place = len(bucket) == 1 and bucket[0].is_contiguous()
            packed = bucket[0].view(-1) if in_place else torch.cat([tensor.reshape(-1) for tensor in bucket])
            _wire.check_reducible(packed, self.op)
            mpi_ops.reduce_alike_(packed, self.op, *scales)
            for tensor, part in zip(bucket, packed.split([tensor.numel() for tensor in bucket])):
                yield part.view(tensor.shape)

    @contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """`step` inside of it uses the gradients as they are."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Reduces the gradients and makes the wrapped optimizer's step.

        A closure's gradients are reduced each time that it was called.
        """
        if not self._should_synchronize:
            self._synchronized = False
            return super().step(closure)
        if self._synchronized:
            warnings.warn("optimizer.step() called without optimizer.skip_synchronize() context after "
                          "optimizer.synchronize(): the gradients are reduced twice. Put the step into "
                          "`with optimizer.skip_synchronize():`.", stacklevel=2)
        if closure is None:
            self.synchronize()
        else:
            closure = self._with_reduced_gradients(closure)
        self._synchronized = False
        loss = super().step(closure)
        self._synchronized = False
        return loss

    # PyTorch wraps `step` for hooks and profiling unless this is set; the wrapped optimizer's step has that already.
    step.hooked = True  # type: ignore[attr-defined]

    def _with_reduced_gradients(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        def call() -> Any:
            loss = closure()
            self.synchronize()
            return loss
        return call

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """As PyTorch's; not between backward and `step` or `synchronize`."""
        if self._pending:
            raise AssertionError("optimizer.zero_grad() was called after loss.backward() but before optimizer.step() "
                                 "or optimizer.synchronize(): the gradients would be lost.")
        super().zero_grad(*args, **kwargs)


def _weakly(method: Any) -> Callable[[torch.Tensor], None]:
    """A hook that does not keep the optimizer alive."""
    reference = weakref.WeakMethod(method)

    def hook(parameter: torch.Tensor) -> None:
        alive = reference()
        if alive is not None:
            alive(parameter)

    return hook


def _after_accumulation(parameter: torch.Tensor, hook: Callable[[torch.Tensor], None]) -> None:
    """Calls the hook whenever backward has added to parameter.grad."""
    if hasattr(parameter, "register_post_accumulate_grad_hook"):  # since PyTorch 2.1
        parameter.register_post_accumulate_grad_hook(hook)
        return
    accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
    accumulator.register_hook(lambda *_: hook(parameter))
    # The hook exists only as long as this node is referenced.
    parameter._corro_accumulator = accumulator  # type: ignore[attr-defined]


def _names(param_groups: List[Dict[str, Any]], parameters: List[torch.Tensor],
           named_parameters: Optional[_NamedParameters]) -> Dict[torch.Tensor, str]:
    """A name for each parameter, the same on all ranks."""
    if named_parameters is None:
        return {parameter: f"allreduce.noname.{group_index}.{index}" for group_index, group in enumerate(param_groups)
                for index, parameter in enumerate(group["params"])}
    named = list(named_parameters)
    if not all(isinstance(entry, tuple) and len(entry) == 2 for entry in named):
        raise ValueError("named_parameters should be a sequence of tuples (name, parameter), as "
                         "model.named_parameters() gives them")
    duplicates = _DistributedOptimizer.find_duplicates(name for name, _ in named)
    if duplicates:
        raise ValueError("Parameter names in named_parameters must be unique. Found duplicates: "
                         + ", ".join(sorted(map(str, duplicates))))
    names = {parameter: name for name, parameter in named}
    unnamed = sum(parameter not in names for parameter in parameters)
    if unnamed:
        raise ValueError(f"named_parameters was specified, but {unnamed} of the optimizer's {len(parameters)} "
                         "parameters were not named")
    return names


def _check_passes(passes: int) -> None:
    if passes <= 0:
        raise ValueError("backward_passes_per_step must be > 0")


def _check_groups(groups: _Groups) -> None:
    """Groups are a hint which gradients to fuse; they are validated, and all gradients are fused."""
    if groups is None:
        return
    if isinstance(groups, int):
        if groups < 0:
            raise ValueError("groups should be a non-negative integer or a list of lists of torch.Tensor")
        return
    if not isinstance(groups, (list, tuple)) or not all(isinstance(group, (list, tuple)) for group in groups):
        raise ValueError("groups should be a non-negative integer or a list of lists of torch.Tensor")
    members = [tensor for group in groups for tensor in group]
    if not all(torch.is_tensor(tensor) for tensor in members):
        raise ValueError("groups must consist of torch.Tensor")
    if len({id(tensor) for tensor in members}) != len(members):
        raise ValueError("a parameter can only be in one of the groups, and there once")


def DistributedOptimizer(optimizer: torch.optim.Optimizer, named_parameters: Optional[_NamedParameters] = None,
                         compression: Any = Compression.none, backward_passes_per_step: int = 1,
                         op: int = mpi_ops.Average, gradient_predivide_factor: float = 1.0, num_groups: int = 0,
                         groups: _Groups = None, sparse_as_dense: bool = False,
                         process_set: ProcessSet = global_process_set) -> torch.optim.Optimizer:
    """An optimizer like the given one, of a subclass with the same name, whose steps use the gradients of all ranks.

    backward_passes_per_step: how many backward passes add up locally before each step.
    op: Average or Sum.  gradient_predivide_factor: how much of the averaging is done before the sum.
    compression: `hvd.Compression.fp16` sends gradients as float16.
    groups, num_groups: accepted; all gradients are fused anyway.
    """
    _check_passes(backward_passes_per_step)
    if op == mpi_ops.Adasum:
        raise NotSupportedYet("op=Adasum is not supported yet; there are Average and Sum")
    if gradient_predivide_factor != 1.0 and op != mpi_ops.Average:
        raise ValueError("gradient_predivide_factor not supported with op != Average")
    if num_groups != 0:
        warnings.warn("Parameter `num_groups` has been replaced by `groups` and will be removed",
                      DeprecationWarning, stacklevel=2)
        groups = num_groups if groups is None else groups
    kind = type(optimizer)
    made = type(kind.__name__, (_DistributedOptimizer, kind), {"__module__": __name__, "__doc__": kind.__doc__})
    out = made(optimizer.param_groups, named_parameters, compression, backward_passes_per_step, op,
               gradient_predivide_factor, groups, sparse_as_dense, process_set)
    out.state.update(optimizer.state)  # of an optimizer that was loaded from a checkpoint before
    out.defaults.update(optimizer.defaults)  # for groups that are added later
    return out
