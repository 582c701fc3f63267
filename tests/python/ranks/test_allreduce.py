"""allreduce against closed forms, for every type and operation."""
import warnings

import pytest
import torch

import horovod.torch as hvd

INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
SHAPES = [(), (0,), (1,), (17,), (3, 5), (2, 3, 4)]


def filled(shape, dtype, rank):
    """Small whole numbers, so that every sum is exact in every type."""
    count = torch.Size(shape).numel()
    return (torch.arange(count) % 7 + rank).reshape(shape).to(dtype)


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sum_min_and_max(dtype, shape, rank, size):
    everyones = torch.stack([filled(shape, dtype, other).double() for other in range(size)])
    for op, expected in ((hvd.Sum, everyones.sum(0)), (hvd.Min, everyones.amin(0)), (hvd.Max, everyones.amax(0))):
        mine = filled(shape, dtype, rank)
        reduced = hvd.allreduce(mine, op=op)
        assert reduced.dtype == dtype and reduced.shape == torch.Size(shape)
        assert torch.equal(reduced, expected.to(dtype))
        assert torch.equal(mine, filled(shape, dtype, rank))
        assert hvd.allreduce_(mine, op=op) is mine
        assert torch.equal(mine, expected.to(dtype))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_the_average_is_rounded_once(dtype, rank, size):
    everyones = torch.stack([filled((41,), dtype, other).double() for other in range(size)])
    assert torch.equal(hvd.allreduce(filled((41,), dtype, rank)), (everyones.sum(0) / size).to(dtype))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_the_average_of_integers_is_cut_toward_zero(dtype, rank, size):
    sign = 1 if dtype == torch.uint8 else -1
    values = [sign * (3 * other + 1) for other in range(size)]
    expected = sign * (abs(sum(values)) // size)
    assert hvd.allreduce(torch.tensor([values[rank]], dtype=dtype)).tolist() == [expected]


def test_integers_of_64_bits_lose_none(rank, size):
    def mine(of):
        return [2**62 // size + of, -(2**62) // size - 3 * of, 2**53 + 1 + of, -1 - of, of << 32, (of << 32) - of]
    columns = list(zip(*(mine(other) for other in range(size))))
    tensor = torch.tensor(mine(rank))
    assert hvd.allreduce(tensor, op=hvd.Sum).tolist() == [sum(column) for column in columns]
    assert hvd.allreduce(tensor, op=hvd.Min).tolist() == [min(column) for column in columns]
    assert hvd.allreduce(tensor, op=hvd.Max).tolist() == [max(column) for column in columns]
    assert hvd.allreduce(tensor).tolist() == [abs(sum(c)) // size * (1 if sum(c) > 0 else -1) for c in columns]


def test_integers_wrap_around_as_pytorchs_do(size):
    for dtype in INTEGERS:
        largest = torch.full((3,), torch.iinfo(dtype).max, dtype=dtype)
        expected = largest.clone()
        for _ in range(size - 1):
            expected += largest
        assert torch.equal(hvd.allreduce(largest, op=hvd.Sum), expected)


def test_bool(rank, size):
    mine = torch.tensor([True, False, rank == 0, rank != 0])
    some = size > 1
    assert hvd.allreduce(mine, op=hvd.Sum).tolist() == [True, False, True, some]
    assert hvd.allreduce(mine, op=hvd.Max).tolist() == [True, False, True, some]
    assert hvd.allreduce(mine, op=hvd.Min).tolist() == [True, False, not some, False]
    with pytest.raises(ValueError, match="average"):
        hvd.allreduce(mine)


def test_scale_factors(rank, size):
    third = 1.0 / 3.0
    for dtype in (torch.float32, torch.float64):
        mine, factor = torch.tensor([1.0 + rank, -5.0], dtype=dtype), torch.tensor(third, dtype=dtype)
        expected = torch.zeros(2, dtype=dtype)
        for other in range(size):
            expected += torch.tensor([1.0 + other, -5.0], dtype=dtype) * factor
        assert torch.allclose(hvd.allreduce(mine, op=hvd.Sum, prescale_factor=third), expected, rtol=1e-7, atol=1e-8)
        total = hvd.allreduce(mine, op=hvd.Sum)
        assert torch.equal(hvd.allreduce(mine, op=hvd.Sum, postscale_factor=third), total * factor)
    integers = torch.tensor([3 + rank, -7])
    before = [sum(int((3 + other) * 0.5) for other in range(size)), size * -3]
    assert hvd.allreduce(integers, op=hvd.Sum, prescale_factor=0.5).tolist() == before
    after = [int(sum(3 + other for other in range(size)) * 0.5), int(size * -7 * 0.5)]
    assert hvd.allreduce(integers, op=hvd.Sum, postscale_factor=0.5).tolist() == after
    half = torch.tensor([1.0 + rank], dtype=torch.float16)
    rounded = sum((torch.tensor(1.0 + other) * torch.tensor(third)).half().float() for other in range(size)).half()
    assert torch.equal(hvd.allreduce(half, op=hvd.Sum, prescale_factor=third), rounded.reshape(1))


def test_the_older_argument(rank, size):
    mine = torch.tensor([float(rank)])
    total = float(sum(range(size)))
    with pytest.warns(DeprecationWarning):
        assert hvd.allreduce(mine, average=False).item() == total
    with pytest.warns(DeprecationWarning):
        assert hvd.allreduce(mine, True).item() == pytest.approx(total / size)
    assert hvd.allreduce_(mine.clone(), None, "a name", hvd.Sum).item() == total  # by position
    with pytest.raises(ValueError, match="The op parameter supersedes average. Please provide only one of them."):
        hvd.allreduce(mine, average=True, op=hvd.Sum)


def test_leaves_and_views_may_be_changed_in_place(rank, size):
    leaf = torch.full((3,), float(rank), requires_grad=True)
    assert hvd.allreduce_(leaf, op=hvd.Sum) is leaf and leaf.requires_grad
    assert leaf.tolist() == [float(sum(range(size)))] * 3
    rows = torch.arange(12.0).reshape(4, 3)
    hvd.allreduce_(rows[2], op=hvd.Sum)
    assert rows[2].tolist() == [6.0 * size, 7.0 * size, 8.0 * size] and rows[1].tolist() == [3.0, 4.0, 5.0]


@pytest.mark.parametrize("op", [hvd.Average, hvd.Sum])
def test_gradients_are_reduced_in_the_same_way(op, rank, size):
    tensor = torch.full((2, 3), float(rank), dtype=torch.float64, requires_grad=True)
    weights = torch.full((2, 3), rank + 1.0, dtype=torch.float64)
    (hvd.allreduce(tensor, op=op, prescale_factor=2.0) * weights).sum().backward()
    expected = 2.0 * sum(range(1, size + 1)) / (size if op == hvd.Average else 1)
    assert torch.allclose(tensor.grad, torch.full_like(tensor, expected), rtol=1e-12)


@pytest.mark.parametrize("name, half", [("fp16", torch.float16), ("bf16", torch.bfloat16)])
def test_compression(name, half, rank, size):
    compression = getattr(hvd.Compression, name)
    tensor = torch.tensor([1.0 / 3.0, 2.0])
    small, context = compression.compress(tensor)
    assert small.dtype == half and compression.decompress(small, context).dtype == torch.float32
    whole = torch.arange(3)
    assert compression.compress(whole)[0].dtype == whole.dtype
    reduced = hvd.allreduce(tensor, op=hvd.Sum, compression=compression)
    assert reduced.dtype == torch.float32
    assert torch.equal(reduced, (small.float() * size).to(half).float())
    assert torch.equal(hvd.allreduce(tensor, compression=hvd.Compression.none), hvd.allreduce(tensor))


def test_what_cannot_be_reduced_is_refused_before_anything_is_sent(rank):
    with pytest.raises(ValueError, match="contiguous"):
        hvd.allreduce(torch.ones(3, 4).t())
    with pytest.raises(ValueError, match="contiguous"):
        hvd.allreduce_(torch.ones(3, 4).t())
    with pytest.raises(ValueError, match="is not supported"):
        hvd.allreduce(torch.ones(2, dtype=torch.complex64))
    for op, name in ((hvd.Adasum, "Adasum"),):
        with pytest.raises(NotImplementedError, match=name):
            hvd.allreduce(torch.ones(2), op=op)
    with pytest.raises(ValueError, match="unknown op"):
        hvd.allreduce(torch.ones(2), op=17)
    with pytest.raises(NotImplementedError, match="sparse"):
        hvd.allreduce(torch.eye(3).to_sparse())
    with pytest.raises(NotImplementedError, match="tensors on meta are not supported yet"):
        hvd.allreduce(torch.ones(2, device="meta"))
    hvd.barrier()


@pytest.mark.parametrize("of", [
    lambda one: hvd.allreduce(torch.ones(17 + one, 2)),
    lambda one: hvd.allreduce(torch.ones((2, 3) if one else (3, 2))),
    lambda one: hvd.allreduce(torch.ones(3, dtype=torch.float16 if one else torch.float32)),
    lambda one: hvd.allreduce_(torch.ones(3, dtype=torch.int64 if one else torch.int32)),
    lambda one: hvd.allreduce(torch.ones(3), op=hvd.Sum if one else hvd.Average),
    lambda one: hvd.allreduce(torch.ones(3), prescale_factor=2.0 if one else 1.0),
    lambda one: hvd.broadcast(torch.ones(3 + one), 0),
    lambda one: hvd.broadcast(torch.ones(3), one),
    lambda one: hvd.broadcast_object("text", one),
    lambda one: hvd.broadcast(torch.ones(3), 0) if one else hvd.allreduce(torch.ones(3)),
    lambda one: hvd.barrier() if one else hvd.allreduce(torch.ones(3)),
])
def test_a_mismatch_raises_on_every_rank_and_the_job_goes_on(of, rank, size):
    if size == 1:
        return
    with pytest.raises(RuntimeError, match="Mismatched") as raised:
        of(int(rank == 1))
    assert isinstance(raised.value, hvd.HorovodInternalError)
    assert hvd.allreduce(torch.ones(2), op=hvd.Sum).tolist() == [size] * 2


def test_results_have_the_same_bits_everywhere(rank, size):
    torch.manual_seed(rank)
    reduced = hvd.allreduce(torch.randn(10007))
    assert torch.equal(reduced, hvd.broadcast(reduced, 0))


def test_no_warning_in_ordinary_use():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hvd.allreduce(torch.ones(3))
        hvd.allreduce(torch.ones(3, requires_grad=True)).sum().backward()


def test_a_product(rank, size):
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.uint8):
        tensor = torch.tensor([2, 1, rank + 1], dtype=dtype)
        product = 1
        for each in range(size):
            product *= each + 1
        assert hvd.allreduce(tensor, op=hvd.Product).tolist() == [2 ** size, 1, product]
    truth = torch.tensor([True, rank > 0])
    assert hvd.allreduce(truth, op=hvd.Product).tolist() == [True, False]
