"""broadcast of tensors, parameters, the optimizer's state and objects."""
import collections

import pytest
import torch

import horovod.torch as hvd
from horovod.common.exceptions import HorovodInternalError

TYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
         torch.float32, torch.float64, torch.complex64]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (3, 5)], ids=str)
def test_every_type_from_every_root(dtype, shape, rank, size):
    def of(other):
        return (torch.arange(torch.Size(shape).numel()) + 3 * other).reshape(shape).to(dtype)
    for root in range(size):
        mine = of(rank)
        received = hvd.broadcast(mine, root)
        assert received.dtype == dtype and torch.equal(received, of(root)) and torch.equal(mine, of(rank))
        assert hvd.broadcast_(mine, root, "a name") is mine
        assert torch.equal(mine, of(root))


def test_an_odd_address(rank):
    memory = torch.full((11,), rank, dtype=torch.uint8)
    hvd.broadcast_(memory[3:11], 0)
    assert memory.tolist() == [rank] * 3 + [0] * 8


def test_integers_of_64_bits_and_nan_keep_their_bits(rank):
    mine = torch.tensor([2**63 - 1, -2**63, 2**53 + 1]) if rank == 0 else torch.zeros(3, dtype=torch.int64)
    assert hvd.broadcast(mine, 0).tolist() == [2**63 - 1, -2**63, 2**53 + 1]
    signalling = torch.tensor([0x7f800001, 0x7fc12345] if rank == 0 else [0, 0], dtype=torch.int32).view(torch.float32)
    assert hvd.broadcast(signalling, 0).view(torch.int32).tolist() == [0x7f800001, 0x7fc12345]


def test_the_gradient_is_the_average_at_the_root(rank, size):
    tensor = torch.ones(4, dtype=torch.float64, requires_grad=True)
    (hvd.broadcast(tensor, 0) * (rank + 1)).sum().backward()
    expected = sum(range(1, size + 1)) / size if rank == 0 else 0.0
    assert torch.allclose(tensor.grad, torch.full((4,), expected, dtype=torch.float64), rtol=1e-12)


def test_a_root_that_is_not_there(size):
    for root in (-1, size):
        for call in (lambda: hvd.broadcast(torch.ones(1), root), lambda: hvd.broadcast_object(1, root),
                     lambda: hvd.broadcast_parameters([torch.ones(1)], root)):
            with pytest.raises(ValueError, match="root_rank"):
                call()


def test_objects(rank, size):
    for root in range(size):
        mine = {"rank": rank, "text": "ü" * 1000, "list": [1, None, (2.5, True)]}
        received = hvd.broadcast_object(mine, root_rank=root, name="it")
        assert received == dict(mine, rank=root)
    square = hvd.broadcast_object((lambda x: x * x) if rank == 0 else None)
    assert square(7) == 49
    assert hvd.broadcast_object(b"" if rank == 0 else None) == b""


def model_of(seed):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.Flatten(),
                               torch.nn.Linear(12, 5).double())


def same(first, second):
    return all(torch.equal(a, b) for a, b in zip(first.state_dict().values(), second.state_dict().values()))


@pytest.mark.parametrize("of", [lambda m: m.state_dict(), lambda m: m.named_parameters(), lambda m: m.parameters(),
                                lambda m: list(m.state_dict().items()), lambda m: list(m.state_dict().values())])
def test_parameters(of, rank, size):
    model = model_of(rank)
    for name, buffer in model.named_buffers():
        if name.endswith("num_batches_tracked"):
            buffer.fill_(0)
    hvd.broadcast_parameters(of(model), root_rank=size - 1)
    assert same(model, model_of(size - 1))


def test_parameters_that_are_not_contiguous_or_integers(rank):
    weight = torch.nn.Parameter(torch.full((4, 3, 2, 2), float(rank)).to(memory_format=torch.channels_last))
    count = torch.full((3,), rank, dtype=torch.int32)
    hvd.broadcast_parameters({"weight": weight, "count": count, "note": "no tensor"}, root_rank=0)
    assert weight.eq(0).all() and count.eq(0).all() and weight.is_contiguous(memory_format=torch.channels_last)


def test_parameters_in_another_order_of_keys(rank):
    entries = [("b", torch.full((2,), 10.0 + rank)), ("a", torch.full((2,), 20.0 + rank))]
    state = collections.OrderedDict(entries if rank % 2 == 0 else reversed(entries))
    hvd.broadcast_parameters(state, root_rank=0)
    assert state["a"].tolist() == [20.0] * 2 and state["b"].tolist() == [10.0] * 2


def test_what_are_no_parameters():
    for wrong in (7, "text", [1, 2], None):
        with pytest.raises(ValueError, match="invalid params"):
            hvd.broadcast_parameters(wrong, 0)


def test_ranks_with_different_models_learn_so_and_can_go_on(rank, size):
    if size == 1:
        return
    mine = {"w": torch.ones(2, 3) if rank != 1 else torch.ones(3, 2)}
    says = r"rank 0 has w \(float32 \[2, 3\]\) where rank 1 has w \(float32 \[3, 2\]\)" if rank == 1 else \
        "another rank differs from rank 0"
    with pytest.raises(HorovodInternalError, match=says):
        hvd.broadcast_parameters(mine, 0)
    hvd.barrier()


OPTIMIZERS = [
    (torch.optim.SGD, {}), (torch.optim.SGD, {"momentum": 0.9, "weight_decay": 0.1, "nesterov": True}),
    (torch.optim.Adam, {"amsgrad": True}), (torch.optim.AdamW, {"weight_decay": 0.1, "betas": (0.8, 0.95)}),
    (torch.optim.RMSprop, {"centered": True, "momentum": 0.5}), (torch.optim.Adagrad, {}),
    (torch.optim.Adadelta, {}), (torch.optim.Adamax, {}), (torch.optim.ASGD, {}), (torch.optim.Rprop, {}),
]


def one_step(model, optimizer):
    optimizer.zero_grad()
    sum((parameter ** 2).sum() for parameter in model.parameters()).backward()
    optimizer.step()


def entries_of(optimizer):
    return {(key, name): value for key, state in optimizer.state_dict()["state"].items()
            for name, value in state.items()}


@pytest.mark.parametrize("kind, options", OPTIMIZERS, ids=lambda value: getattr(value, "__name__", None))
@pytest.mark.parametrize("wrapped", [False, True])
def test_optimizer_state(kind, options, wrapped, rank, size):
    """Rank 0 comes from a checkpoint; the others are fresh, and have other options."""
    model = torch.nn.Linear(4, 3)
    optimizer = kind(model.parameters(), **{**options, "lr": 0.01 * (rank + 1)})
    if rank == 0:
        one_step(model, optimizer)
        one_step(model, optimizer)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    if wrapped:
        optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    roots, mine = hvd.broadcast_object(entries_of(optimizer)), entries_of(optimizer)
    assert roots.keys() == mine.keys()
    for key, value in mine.items():
        assert type(value) is type(roots[key])
        assert torch.equal(value, roots[key]) if torch.is_tensor(value) else value == roots[key]
    group = {name: value for name, value in optimizer.param_groups[0].items() if name != "params"}
    roots_group = hvd.broadcast_object(group)
    assert group == roots_group
    assert {name: type(value) for name, value in group.items()} == \
        {name: type(value) for name, value in roots_group.items()}
    assert group["lr"] == 0.01
    one_step(model, optimizer)  # all are in step from here on
    for parameter in model.parameters():
        assert torch.allclose(parameter, hvd.broadcast(parameter.detach(), 0), rtol=1e-6)


def test_a_fresh_optimizer_gets_zero_gradients_and_makes_no_step(rank):
    frozen, trained = torch.nn.Parameter(torch.ones(2, dtype=torch.int32), requires_grad=False), \
        torch.nn.Parameter(torch.full((2,), 3.0))
    optimizer = torch.optim.SGD([frozen, trained], lr=0.1 + rank, momentum=0.9, weight_decay=0.5)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=[("frozen", frozen), ("trained", trained)])
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    assert frozen.grad is None and trained.grad.tolist() == [0.0, 0.0]
    assert trained.tolist() == [3.0, 3.0] and not optimizer.state_dict()["state"]
    assert optimizer.param_groups[0]["lr"] == 0.1
    assert torch.equal(hvd.broadcast(trained.grad, 0), trained.grad)


def test_the_state_of_lbfgs_is_refused():
    with pytest.raises(ValueError, match="LBFGS"):
        hvd.broadcast_optimizer_state(torch.optim.LBFGS([torch.ones(1, requires_grad=True)]), 0)
