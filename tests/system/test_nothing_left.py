"""kill -9 of any process of a job, at any moment, leaves nothing behind."""
import json
import os
import pathlib
import random
import subprocess
import sys

import corro_system as k
import pytest

CAMPAIGN = pathlib.Path(__file__).parent / "campaign.py"
RUNS = 20 if k.SLOW == 1 else 8  # under a sanitizer it is the memory that counts, and not the moment

# What the launcher says when it lives to say it.
CODES = {"launcher": {-9}, "session": {121}, "guard": {121}, "agent": {121}, "worker": {137}, "launcher+agent": {-9}}


def campaign(*arguments):
    as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    done = subprocess.run(
        ["unshare", *as_root, "--pid", "--fork", "--mount-proc", "--kill-child", "--net", "--mount", "--ipc",
         sys.executable, CAMPAIGN, *map(str, arguments)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", CODES)
def test_after_kill_9_nothing_is_left(kind):
    seed = int(os.environ.get("CORRO_SEED", random.randrange(1 << 32)))
    print(f"to see the same moments again: CORRO_SEED={seed}")
    report = campaign(kind, RUNS, seed)
    assert report["before"] == []
    assert len(report["runs"]) == RUNS
    for number, run in enumerate(report["runs"]):
        assert run["left"] == [], (number, seed, run)
        assert run["code"] in CODES[kind], (number, seed, run)


def test_after_500_jobs_nothing_is_left():
    report = campaign("nobody", 500 if k.SLOW == 1 else 50, 0)  # a sanitizer has seen all there is to see by then
    assert [run for run in report["runs"] if run["code"] != 0] == []
    assert report["runs"][-1]["left"] == []


def test_what_is_left_would_be_seen():
    seen = "\n".join(campaign("control"))
    for sort in ("actor", "/tmp/a-file", "/dev/shm/a-segment", "tcp "):
        assert sort in seen, seen
