"""Whole jobs: examples, failures, and what happens outside of a job."""
import re

import pytest
from jobs import HOROVODRUN, TOP, job, python, run

import sys


def test_the_mnist_example_learns():
    ended = run(HOROVODRUN, "-np", 4, sys.executable, TOP / "examples/pytorch_mnist.py")
    assert ended.code == 0, ended
    assert "4 workers" in ended.out
    accuracies = [float(found) for found in re.findall(r"right +([\d.]+)%", ended.out)]
    assert len(accuracies) == 3 and accuracies[-1] > 93.0, ended


def test_the_numpy_example_finds_pi():
    ended = run(HOROVODRUN, "-np", 3, sys.executable, TOP / "examples/numpy_allreduce.py")
    assert ended.code == 0 and re.search(r"3 workers threw 3,000,000 darts: pi is about 3\.1[34]", ended.out), ended


def test_a_workers_exception_is_what_the_launcher_shows_and_all_others_learn_of_it():
    ended = job(3, """
import torch, horovod.torch as hvd
hvd.init()
for step in range(1000):
    if step == 5 and hvd.rank() == 1:
        raise KeyError("the image that is not there")
    try:
        hvd.allreduce(torch.ones(4))
    except hvd.HorovodInternalError as error:
        print("LEARNT", error.rank, error, flush=True)
        raise SystemExit(9)
""")
    assert ended.code == 1, ended
    assert "KeyError: 'the image that is not there'" in ended.err, ended
    assert len(re.findall(r"<stdout>:LEARNT 1 .*rank 1 on host localhost", ended.out)) == 2, ended
    assert "rank 1 on host localhost exited with code 1" in ended.err, ended


def test_ranks_that_call_different_things_learn_so():
    ended = job(2, """
import torch, horovod.torch as hvd
hvd.init()
try:
    hvd.allreduce(torch.ones(4 + hvd.rank()))
except RuntimeError as error:
    assert isinstance(error, hvd.HorovodInternalError)
    print("LEARNT", error, flush=True)
""")
    assert ended.out.count("LEARNT") == 2, ended


def test_without_a_launcher_there_is_one_worker():
    ended = python("""
import torch, horovod.torch as hvd
assert not hvd.is_initialized()
hvd.shutdown()
hvd.init()
assert (hvd.rank(), hvd.size(), hvd.local_size(), hvd.cross_size()) == (0, 1, 1, 1)
assert hvd.allreduce(torch.tensor([7])).item() == 7
hvd.shutdown()
assert not hvd.is_initialized()
hvd.init()
hvd.barrier()
""")
    assert ended.code == 0, ended


def test_before_init():
    ended = python("""
import torch, horovod.torch as hvd
from horovod.common.exceptions import HorovodInternalError

def raised(call):
    try: call()
    except Exception as error: return type(error), str(error)

text = "Horovod has not been initialized; use hvd.init()."
for place in (hvd.rank, hvd.size, hvd.local_rank, hvd.local_size, hvd.cross_rank, hvd.cross_size):
    assert raised(place) == (ValueError, text), place
assert raised(lambda: hvd.allreduce(torch.ones(1))) == (HorovodInternalError, text)
assert raised(hvd.barrier) == (HorovodInternalError, text)
assert hvd.global_process_set.size() is None and hvd.gloo_built()
w = torch.ones(1, requires_grad=True)
duplicate = raised(lambda: hvd.DistributedOptimizer(torch.optim.SGD([w], lr=1.0), [("a", w), ("a", w)]))
assert duplicate[0] is ValueError and "unique" in duplicate[1], duplicate
""")
    assert ended.code == 0, ended


def test_init_and_shutdown_any_number_of_times():
    ended = job(3, """
import os, torch, horovod.torch as hvd
def held():
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
for cycle in range(120):
    hvd.init()
    assert hvd.allreduce(torch.ones(3), op=hvd.Sum).tolist() == [3, 3, 3]
    hvd.shutdown()
    if cycle == 5:
        before = held()
assert held() == before, (held(), before)
print("DONE", flush=True)
""")
    assert ended.out.count("DONE") == 3, ended


def test_importing_starts_nothing_and_is_quick():
    program = """
import os, threading, time, torch
before = len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
began = time.perf_counter()
import horovod.torch
print(time.perf_counter() - began)
assert (len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))) == before
"""
    times = []
    for _ in range(3):
        ended = python(program)
        assert ended.code == 0, ended
        times.append(float(ended.out))
    assert min(times) < 0.1, times


def test_without_pytorch_the_import_says_so_in_one_line():
    ended = python("import sys; sys.modules['torch'] = None; import horovod.torch")
    assert ended.code == 1
    assert ended.err.splitlines()[-1] == \
        "ImportError: horovod.torch needs PyTorch, which is not installed here: pip install torch", ended


def test_workers_of_a_data_loader_that_were_forked_after_init():
    ended = job(2, """
import torch, horovod.torch as hvd
from torch.utils.data import DataLoader, TensorDataset
hvd.init()
loader = DataLoader(TensorDataset(torch.arange(40.0)), batch_size=4, num_workers=2, multiprocessing_context="fork")
total = sum(batch.sum() for batch, in loader)
print("TOTAL", hvd.allreduce(total, op=hvd.Sum).item(), flush=True)
hvd.barrier()
""")
    assert ended.code == 0 and ended.out.count("TOTAL 1560.0") == 2, ended


def test_the_other_threads_run_while_one_waits():
    ended = job(2, """
import threading, time, torch, horovod.torch as hvd
hvd.init()
count, end = 0, False
def tick():
    global count
    while not end: time.sleep(0.01); count += 1
if hvd.rank() == 0:
    thread = threading.Thread(target=tick); thread.start()
    hvd.barrier()
    end = True; thread.join()
    print("TICKS", count > 20, flush=True)
else:
    time.sleep(1.0)
    hvd.barrier()
""")
    assert ended.code == 0 and "TICKS True" in ended.out, ended


@pytest.mark.parametrize("np", [2])
def test_mixed_precision_with_a_scaler(np):
    ended = job(np, """
import torch, horovod.torch as hvd
hvd.init()
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
scaler = torch.amp.GradScaler("cpu", init_scale=128.0) if hasattr(torch.amp, "GradScaler") else None
if scaler is None: print("DONE True"); raise SystemExit
for step in range(3):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(torch.ones(3, 4) * (hvd.rank() + 1)).square().mean()
    scaler.scale(loss).backward()
    optimizer.synchronize()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    with optimizer.skip_synchronize():
        scaler.step(optimizer)
    scaler.update()
same = all(torch.equal(hvd.broadcast(p.detach(), 0), p.detach()) for p in model.parameters())
print("DONE", same and bool(torch.isfinite(model.weight).all()), flush=True)
""")
    assert ended.code == 0 and ended.out.count("DONE True") == np, ended
