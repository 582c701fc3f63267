"""Workers in Python speak with each other through the library, with nothing compiled."""
import re
import sys

import pytest
from corro_system import BUILD, TOP, run

# A Python that is not built with the sanitizers cannot load a library that is.
pytestmark = pytest.mark.skipif(BUILD.name in ("asan", "tsan"), reason="needs a library without sanitizers")

ENVIRONMENT = {"PYTHONPATH": str(TOP / "python"), "CORRO_LIBRARY": str(BUILD / "lib/libcorro.so")}


def run_python(np, program):
    return run("-np", np, sys.executable, "-c", program, env=ENVIRONMENT)


def test_python_workers_share_what_they_have(mark):
    ended = run_python(3, """
import array, corro
with corro.Context() as job:
    total, mean, copied = array.array("d", [job.rank]), array.array("f", [job.rank]), array.array("d", [job.rank])
    job.allreduce(total)
    job.allreduce(mean, corro.AVERAGE)
    job.allreduce(array.array("f"))
    job.broadcast(copied, root=2)
    job.barrier()
    print(job.rank, job.size, total[0], mean[0], copied[0])
""")
    assert ended.code == 0, ended
    assert sorted(re.findall(r"<stdout>:(.*)", ended.out)) == [f"{rank} 3 3.0 1.0 2.0" for rank in range(3)]


def test_a_python_worker_learns_who_died(mark):
    ended = run_python(2, """
import array, os, corro
job = corro.Context()
if job.rank == 1: os._exit(5)
try:
    while True: job.allreduce(array.array("d", [1]))
except corro.Error as error:
    print(error.status == corro.PEER_LOST, error.rank, error)
""")
    assert ended.code == 5, ended
    assert "True 1 allreduce(sum of 1 f64): rank 1 on host localhost exited with code 5" in ended.out, ended


def test_a_buffer_that_cannot_be_sent_is_refused(mark):
    ended = run_python(1, """
import array, corro
for wrong in (memoryview(b"abcd").cast("c"), memoryview(b"12345678").cast("d"), 7):
    try: corro.Context().allreduce(wrong)
    except TypeError: print("refused")
""")
    assert ended.code == 0 and ended.out.count("refused") == 3, ended
