"""What is told about a failure: who, how, why, and what the others were doing."""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess

import corro_system as k
import pytest
from corro_system import ACTOR, HOROVODRUN, run


def test_the_last_lines_say_what_everybody_was_at():
    ended = run("-np", 4, ACTOR, "open", "allreduce", "@2:soon:signal=9", "loop=64")
    assert ended.code == 137, ended
    tail = ended.err[ended.err.index("horovodrun: rank 2"):]
    assert re.search(r"^  it was (in|after) allreduce\(sum of 64 f64\), call \d+", tail, re.M), ended
    assert re.search(r"^  ranks? .*allreduce\(sum of 64 f64\), call \d+", tail, re.M), ended


def test_plain_programs_are_seen_from_outside():
    ended = run("-np", 3, "sh", "-c", "if [ $RANK = 1 ]; then sleep 0.3; exit 3; fi; exec sleep 60")
    assert ended.code == 3 and "ranks 0 and 2: sleeping in clock_nanosleep; ended by SIGTERM" in ended.err, ended


def test_a_report_for_programs_lies_beside_the_output(tmp_path):
    ended = run("-np", 2, "--output-filename", tmp_path, "sh", "-c",
                "if [ $RANK = 1 ]; then sleep 0.3; exit 3; fi; exec sleep 60")
    report = json.loads((tmp_path / "failure.json").read_text())
    assert ended.code == 3 and report["failure"]["rank"] == 1 and report["failure"]["cause"] == "exited with code 3"
    other, culprit = report["workers"]
    assert culprit["peak_rss_bytes"] > 1 << 18 and culprit["cpu_seconds"] >= 0, culprit
    assert other["signal"] == signal.SIGTERM and other["state"].startswith("sleeping") and other["rss_bytes"] > 0
    assert run("-np", 1, "--output-filename", tmp_path, "true").code == 0
    assert not (tmp_path / "failure.json").exists()


@pytest.mark.parametrize("umask, mode", [(0o022, 0o644), (0o077, 0o600)])
def test_what_lies_in_the_directory_of_the_output_is_as_wide_as_the_user_s_files_are(tmp_path, umask, mode):
    done = subprocess.run([k.HOROVODRUN, "-np", "1", "--output-filename", str(tmp_path), "false"], capture_output=True,
                          umask=umask, timeout=30 * k.SLOW)
    made = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.name for path in made} == {"stdout", "stderr", "failure.json"}, done
    assert {path.stat().st_mode & 0o777 for path in made} == {mode}, done


def test_the_end_does_not_wait_for_those_who_stand_still(mark):
    """One ignores SIGTERM, one is stopped, one's child holds its stdout."""
    program = ("case $RANK in 0) sleep 0.3; exit 3;; 1) trap '' TERM; while :; do sleep 0.1; done;; "
               "2) kill -STOP $$; sleep 60;; 3) sleep 60 & exec sleep 60;; esac")
    ended = run("-np", 4, "--grace", 1, "sh", "-c", program)
    assert ended.code == 3 and ended.took < (0.3 + 2 + 1 + 1) * k.SLOW, ended


def test_a_python_that_knows_corro_writes_its_stacks(tmp_path):
    program = ("import corro, os, time, sys\n"
               "def deep_inside():\n    time.sleep(60)\n"
               "if os.environ['RANK'] == '1':\n    time.sleep(0.7); sys.exit(3)\n"
               "deep_inside()\n")
    ended = run("-np", 2, "--output-filename", tmp_path, "/usr/bin/python3", "-c", program,
                env={"PYTHONPATH": str(k.TOP / "python"), "CORRO_LIBRARY": str(k.BUILD / "lib/libcorro.so")})
    assert ended.code == 3, ended
    assert re.search(r"^\[0\]<stderr>:.*deep_inside", ended.err, re.M), ended
    seen = json.loads((tmp_path / "failure.json").read_text())["workers"][0]
    assert "deep_inside" in (tmp_path / seen["python_stacks_in"]).read_text()


LIMIT = 512 << 20  # enough for launcher and agent, with sanitizers too


def memory_cgroup():
    """A cgroup of version 1 with a limit, below our own; None if it cannot be had."""
    own = next((line.split(":", 2)[2].strip() for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines()
                if line.split(":")[1] == "memory"), None)
    folder = pathlib.Path(f"/sys/fs/cgroup/memory{own}/corro-test-{os.getpid()}") if own else None
    try:
        folder.mkdir()
        (folder / "memory.use_hierarchy").write_text("1")
    except (OSError, AttributeError):
        pass
    try:
        (folder / "memory.limit_in_bytes").write_text(str(LIMIT))
        return folder
    except (OSError, TypeError):
        return None


def test_a_worker_that_the_kernel_killed_for_its_memory_is_named_as_such():
    folder = memory_cgroup()
    if folder is None:
        pytest.skip("there is no memory cgroup that could be limited here")
    try:
        join = f"echo $$ > {folder}/cgroup.procs; exec "
        hungry = "if [ $RANK = 1 ]; then exec /usr/bin/python3 -c 'x = bytearray(1 << 30)'; fi; exec sleep 60"
        done = subprocess.run(["sh", "-c", join + f'{HOROVODRUN} -np 2 sh -c "$0"', hungry], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=60 * k.SLOW)
        assert done.returncode == 137 and "rank 1 on host localhost was killed by SIGKILL: " in done.stderr, done
        assert "out of memory" in done.stderr, done
    finally:
        with contextlib.suppress(OSError):
            k.eventually(lambda: subprocess.call(["rmdir", folder], stderr=subprocess.DEVNULL) == 0, 5)
