"""These tests run on every rank of a job: `horovodrun -np 3 python -m pytest tests/python/ranks`.

All ranks run the same tests in the same order, so that their collectives meet.
"""
import pytest

import horovod.torch as hvd


@pytest.fixture(scope="session", autouse=True)
def job():
    hvd.init()
    yield
    hvd.barrier()
    hvd.shutdown()


@pytest.fixture
def rank():
    return hvd.rank()


@pytest.fixture
def size():
    return hvd.size()
