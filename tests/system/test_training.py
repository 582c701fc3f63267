"""The example trains the same network whatever the number of workers."""
import re

import pytest
import corro_system as k
from corro_system import TRAIN, run
from train_reference import losses as reference

STEPS = 60


@pytest.fixture(scope="module")
def expected():
    return reference(STEPS)


@pytest.mark.parametrize("np, hosts", [(1, "localhost:1"), (2, "localhost:2"), (3, "localhost:3"),
                                       (4, "localhost:2,127.0.0.1:2")])
def test_every_loss_is_that_of_one_worker_on_the_whole_batch(mark, expected, np, hosts):
    ended = run("-np", np, "-H", hosts, TRAIN, "--steps", STEPS, "--trace", timeout=120)
    assert ended.code == 0, ended
    seen = [float(x) for x in re.findall(r"^\[0\]<stdout>:loss (\S+)$", ended.out, re.M)]
    assert len(seen) == len(expected) == STEPS
    assert max(abs(a - b) for a, b in zip(seen, expected)) < 1e-9
    digests = re.findall(r"^\[(\d+)\]<stdout>:digest (\w+)$", ended.out, re.M)
    assert sorted(int(rank) for rank, _ in digests) == list(range(np))
    assert len({digest for _, digest in digests}) == 1, digests


def test_the_losses_are_not_all_alike(expected):
    """A comparison of constants would prove nothing."""
    assert len(set(expected)) == STEPS and expected[-1] < expected[0]


@pytest.mark.skipif(k.SLOW > 1, reason="a whole training takes a minute under a sanitizer, and the steps are the same")
def test_a_whole_training_separates_the_spirals(mark):
    ended = run("-np", 4, TRAIN, timeout=120)
    accuracy = re.search(r"(\d+(?:\.\d+)?) ?%", ended.out.splitlines()[-1] + ended.out)
    assert ended.code == 0 and accuracy, ended
    assert k.TRAIN and float(accuracy.group(1)) > 95, ended
