"""DistributedOptimizer: the same weights as one process that sees the whole batch."""
import io
import warnings

import pytest
import torch
import torch.nn.functional as F

import horovod.torch as hvd
from horovod.common.exceptions import HorovodInternalError

BATCH = 12  # can be divided by 1, 2, 3 and 4
KINDS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.01, nesterov=True),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01, amsgrad=True),
}


def model_of(dtype=torch.float64):
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Conv2d(1, 3, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(48, 7),
                               torch.nn.ReLU(), torch.nn.Linear(7, 4)).to(dtype)


def batch_of(step, dtype=torch.float64):
    random = torch.Generator().manual_seed(step)
    return (torch.randn(BATCH, 1, 6, 6, generator=random, dtype=torch.float64).to(dtype),
            torch.randint(4, (BATCH,), generator=random))


def mine(tensor, rank, size):
    return tensor[rank * BATCH // size:(rank + 1) * BATCH // size]


def backward(model, images, labels):
    F.cross_entropy(model(images), labels).backward()


def single_process(kind, steps, between=None, dtype=torch.float64):
    """The weights after training on whole batches, without hvd."""
    model = model_of(dtype)
    optimizer = KINDS[kind](model.parameters())
    for step in range(steps):
        optimizer.zero_grad()
        backward(model, *batch_of(step, dtype))
        if between:
            between(model)
        optimizer.step()
    return list(model.parameters())


def distributed(kind, dtype=torch.float64, **options):
    model = model_of(dtype)
    return model, hvd.DistributedOptimizer(KINDS[kind](model.parameters()), named_parameters=model.named_parameters(),
                                           **options)


def assert_same_weights(model, expected, rtol=1e-9, atol=1e-12):
    for parameter, other in zip(model.parameters(), expected):
        assert torch.allclose(parameter, other, rtol=rtol, atol=atol), (parameter - other).abs().max()
        assert torch.equal(hvd.broadcast(parameter.detach(), 0), parameter.detach())


@pytest.mark.parametrize("kind", KINDS)
def test_the_weights_of_one_process_with_the_whole_batch(kind, rank, size):
    model, optimizer = distributed(kind)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    for step in range(6):
        optimizer.zero_grad()
        images, labels = batch_of(step)
        backward(model, mine(images, rank, size), mine(labels, rank, size))
        optimizer.step()
    assert_same_weights(model, single_process(kind, 6))


@pytest.mark.parametrize("options", [{"op": hvd.Sum}, {"gradient_predivide_factor": 2.0}, {"groups": 2},
                                     {"sparse_as_dense": True}], ids=str)
def test_options_that_change_no_weights(options, rank, size):
    model, optimizer = distributed("SGD", **options)
    for step in range(3):
        optimizer.zero_grad()
        images, labels = batch_of(step)
        loss = F.cross_entropy(model(mine(images, rank, size)), mine(labels, rank, size))
        (loss / size if options.get("op") == hvd.Sum else loss).backward()
        optimizer.step()
    assert_same_weights(model, single_process("SGD", 3))


@pytest.mark.parametrize("compression", [hvd.Compression.fp16, hvd.Compression.bf16])
def test_compression_changes_little(compression, rank, size):
    model, optimizer = distributed("SGD", torch.float32, compression=compression)
    for step in range(3):
        optimizer.zero_grad()
        images, labels = batch_of(step, torch.float32)
        backward(model, mine(images, rank, size), mine(labels, rank, size))
        optimizer.step()
    assert_same_weights(model, single_process("SGD", 3, dtype=torch.float32), rtol=0, atol=2e-3)


def test_backward_passes_add_up(rank, size):
    """Each rank's share in pieces of one image; gradients of the pieces add up, so the loss is divided."""
    model, optimizer = distributed("momentum", backward_passes_per_step=BATCH // size)
    for step in range(3):
        optimizer.zero_grad()
        images, labels = (mine(tensor, rank, size) for tensor in batch_of(step))
        for index in range(BATCH // size):
            loss = F.cross_entropy(model(images[index:index + 1]), labels[index:index + 1])
            (loss / (BATCH // size)).backward()
        optimizer.step()
    assert_same_weights(model, single_process("momentum", 3))


def test_clipping_between_synchronize_and_step(rank, size):
    def clip(model):
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    model, optimizer = distributed("Adam")
    for step in range(4):
        optimizer.zero_grad()
        images, labels = batch_of(step)
        backward(model, mine(images, rank, size), mine(labels, rank, size))
        optimizer.synchronize()
        clip(model)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with optimizer.skip_synchronize():
                optimizer.step()
    assert_same_weights(model, single_process("Adam", 4, clip))


def test_a_closure_sees_reduced_gradients(rank, size):
    model, optimizer = distributed("SGD")
    for step in range(3):
        images, labels = (mine(tensor, rank, size) for tensor in batch_of(step))

        def closure():
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            return loss

        assert torch.is_tensor(optimizer.step(closure))
    assert_same_weights(model, single_process("SGD", 3))


def test_a_schedule_of_the_learning_rate(rank, size):
    model, optimizer = distributed("SGD")
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in range(3):
            optimizer.zero_grad(set_to_none=step % 2 == 0)
            backward(model, *(mine(tensor, rank, size) for tensor in batch_of(step)))
            optimizer.step()
            schedule.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.1 / 8)


def test_many_buffers_give_the_same_as_one(rank, size, monkeypatch):
    from horovod.torch import _wire
    monkeypatch.setattr(_wire, "BUCKET_BYTES", 200)
    model, optimizer = distributed("SGD")
    optimizer.zero_grad()
    backward(model, *(mine(tensor, rank, size) for tensor in batch_of(0)))
    optimizer.step()
    assert_same_weights(model, single_process("SGD", 1))


def test_types_may_be_mixed(rank, size):
    parameters = [torch.nn.Parameter(torch.ones(3, dtype=dtype)) for dtype in
                  (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.float32)]
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(parameters, lr=1.0))
    sum((parameter.double() * (rank + 1)).sum() for parameter in parameters).backward()
    optimizer.step()
    expected = 1.0 - sum(range(1, size + 1)) / size
    assert [parameter.tolist() for parameter in parameters] == [[expected] * 3] * 5


def test_what_only_some_ranks_have_used_counts_as_zero_elsewhere(rank, size):
    used, unused = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([used, unused], lr=1.0))
    (used.sum() + (unused.sum() if rank == 0 else 0.0)).backward()
    optimizer.step()
    assert used.tolist() == [0.0, 0.0] and unused.tolist() == pytest.approx([1.0 - 1.0 / size] * 2)


def test_memory_formats_may_differ(rank, size):
    weight = torch.nn.Parameter(torch.zeros(2, 3, 2, 2).to(memory_format=torch.channels_last))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0))
    (weight * torch.arange(24.0).reshape(2, 3, 2, 2)).sum().backward()
    optimizer.step()
    assert torch.equal(weight.detach(), -torch.arange(24.0).reshape(2, 3, 2, 2))


def test_sparse_gradients(rank, size):
    def step(**options):
        table = torch.nn.Embedding(6, 2, sparse=True)
        torch.nn.init.ones_(table.weight)
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(table.parameters(), lr=1.0), **options)
        table(torch.tensor([rank, 5])).sum().backward()
        optimizer.step()
        return table.weight
    weight = step(sparse_as_dense=True)
    assert weight.grad.is_sparse
    touched = torch.tensor([1.0 / size if row < size else 0.0 for row in range(5)] + [1.0])
    assert torch.allclose(weight[:, 0], 1.0 - touched)
    if size > 1:
        with pytest.raises(NotImplementedError, match="sparse_as_dense=True"):
            step()
    hvd.barrier()


def test_a_second_synchronize_warns_once_and_only_once(rank, size):
    model, optimizer = distributed("SGD")
    backward(model, *(mine(tensor, rank, size) for tensor in batch_of(0)))
    optimizer.synchronize()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        optimizer.step()
    assert len(seen) == 1
    assert "optimizer.step() called without optimizer.skip_synchronize()" in str(seen[0].message)


def test_gradients_that_were_not_used_are_not_thrown_away_silently(rank, size):
    model, optimizer = distributed("SGD")
    images, labels = (mine(tensor, rank, size) for tensor in batch_of(0))
    backward(model, images, labels)
    if size > 1:
        with pytest.raises(AssertionError, match="zero_grad"):
            optimizer.zero_grad()
        with pytest.raises(AssertionError, match="more than backward_passes_per_step times"):
            backward(model, images, labels)
    optimizer.load_state_dict(optimizer.state_dict())  # forgets them
    optimizer.zero_grad()
    optimizer.set_backward_passes_per_step(2)
    backward(model, images, labels)
    backward(model, images, labels)
    optimizer.step()
    optimizer.zero_grad()


def test_names(rank, size):
    model = model_of()
    base = torch.optim.SGD([{"params": model[0].parameters()}, {"params": model[3].parameters(), "lr": 0.5}], lr=0.1)
    names = hvd.DistributedOptimizer(base)._parameter_names
    assert sorted(names.values()) == [f"allreduce.noname.{group}.{index}" for group in (0, 1) for index in (0, 1)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    wrapped = hvd.DistributedOptimizer(optimizer, named_parameters=iter(model.named_parameters()))
    assert wrapped._parameter_names == {parameter: name for name, parameter in model.named_parameters()}
    for wrong, says in ((list(model.parameters()), "tuples"),
                        ([("w", parameter) for parameter in model.parameters()], "unique.*w"),
                        (list(model.named_parameters())[1:], "1 of the optimizer's 6 parameters were not named")):
        with pytest.raises(ValueError, match=says):
            hvd.DistributedOptimizer(optimizer, named_parameters=wrong)


def test_arguments_are_checked():
    def wrap(**options):
        parameter = torch.nn.Parameter(torch.ones(1))
        return hvd.DistributedOptimizer(torch.optim.SGD([parameter], lr=0.1), **options)
    with pytest.raises(ValueError, match="backward_passes_per_step"):
        wrap(backward_passes_per_step=0)
    with pytest.raises(ValueError, match="gradient_predivide_factor"):
        wrap(gradient_predivide_factor=2.0, op=hvd.Sum)
    with pytest.raises(NotImplementedError, match="Adasum"):
        wrap(op=hvd.Adasum)
    same = torch.ones(1)
    for groups in (-1, "x", [[1]], [[same], [same]]):
        with pytest.raises(ValueError):
            wrap(groups=groups)
    with pytest.warns(DeprecationWarning):
        wrap(num_groups=1)


def test_the_class_is_the_users(rank):
    parameter = torch.nn.Parameter(torch.ones(1))
    optimizer = hvd.DistributedOptimizer(torch.optim.Adam([parameter], lr=0.125, betas=(0.5, 0.75)))
    assert isinstance(optimizer, torch.optim.Adam)
    assert (type(optimizer).__name__, type(optimizer).__module__) == ("Adam", "horovod.torch.optimizer")
    assert optimizer.param_groups[0]["lr"] == 0.125 and optimizer.param_groups[0]["betas"] == (0.5, 0.75)
    assert not [kind for kind in torch.optim.Optimizer.__subclasses__()
                if kind.__module__.startswith("torch.optim") and "Distributed" in kind.__name__]


def test_the_state_of_the_wrapped_optimizer_is_kept_and_can_be_saved(rank, size):
    parameter = torch.nn.Parameter(torch.ones(3))
    base = torch.optim.Adam([parameter])
    parameter.sum().backward()
    base.step()
    base.zero_grad()
    optimizer = hvd.DistributedOptimizer(base, named_parameters=[("w", parameter)])
    parameter.sum().backward()
    optimizer.step()
    assert int(optimizer.state[parameter]["step"]) == 2
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    assert torch.load(file, weights_only=True)["state"]


def test_frozen_parameters_and_toggles(rank, size):
    model, optimizer = distributed("SGD")
    for parameter in model[0].parameters():
        parameter.requires_grad_(False)
    optimizer.zero_grad()
    backward(model, *(mine(tensor, rank, size) for tensor in batch_of(0)))
    assert all(parameter.grad is None for parameter in model[0].parameters())
    before = [parameter.detach().clone() for parameter in model[0].parameters()]
    optimizer.step()
    assert all(torch.equal(a, b) for a, b in zip(before, model[0].parameters()))
    for parameter in model[0].parameters():
        parameter.requires_grad_(True)
    optimizer.zero_grad()
    backward(model, *(mine(tensor, rank, size) for tensor in batch_of(1)))
    optimizer.step()
    assert not torch.equal(before[0], model[0].weight)


def test_parameters_that_come_later_are_reduced_too(rank, size):
    early, late, last = (torch.nn.Parameter(torch.ones(2)) for _ in range(3))
    late.requires_grad_(False)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([early, late], lr=1.0), [("early", early), ("late", late)])
    early.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    late.requires_grad_(True)
    optimizer.add_param_group({"params": [last]})
    ((early.sum() + late.sum() + last.sum()) * (rank + 1)).backward()
    optimizer.step()
    expected = 1.0 - sum(range(1, size + 1)) / size
    assert late.tolist() == last.tolist() == [expected] * 2 and early.tolist() == [expected - 1.0] * 2


def test_ranks_with_different_models_learn_so(rank, size):
    if size == 1:
        return
    parameter = torch.nn.Parameter(torch.ones((2, 3) if rank == 0 else (3, 2)))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([parameter], lr=0.1), named_parameters=[("w", parameter)])
    parameter.sum().backward()
    with pytest.raises(HorovodInternalError, match="Mismatched collectives"):
        optimizer.step()
    hvd.barrier()


def test_the_hooks_of_older_pytorch(rank, size, monkeypatch):
    """Before 2.1 there was no hook on a parameter, only one on the node that adds to its gradient."""
    monkeypatch.delattr(torch.Tensor, "register_post_accumulate_grad_hook", raising=False)
    model, optimizer = distributed("SGD")
    images, labels = (mine(tensor, rank, size) for tensor in batch_of(0))
    backward(model, images, labels)
    assert len(optimizer._pending) == (6 if size > 1 else 0)
    optimizer.step()
    assert_same_weights(model, single_process("SGD", 1))


def test_an_optimizer_that_is_given_up_leaves_no_hooks_behind(rank, size):
    model = model_of()
    for step in range(3):
        optimizer = hvd.DistributedOptimizer(KINDS["SGD"](model.parameters()))
        optimizer.zero_grad(set_to_none=True)
        backward(model, *(mine(tensor, rank, size) for tensor in batch_of(step)))
        optimizer.step()
        del optimizer
    assert_same_weights(model, single_process("SGD", 3))


def test_gradients_may_be_taken_by_others_too(rank, size):
    """torch.autograd.grad accumulates nothing, so nothing is counted."""
    model, optimizer = distributed("SGD")
    images, labels = (mine(tensor, rank, size) for tensor in batch_of(0))
    torch.autograd.grad(F.cross_entropy(model(images), labels), list(model.parameters()))
    optimizer.zero_grad()
    backward(model, images, labels)
    optimizer.step()
    assert_same_weights(model, single_process("SGD", 1))
