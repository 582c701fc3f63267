"""The truth about the end: who failed first, with which code, how soon, and what the others said."""
import os
import pathlib
import pty
import signal
import subprocess
import time

import pytest
import corro_system as k
from corro_system import ACTOR, run

GRACE = 2
DEATHS = {"exit=3": (3, "exited with code 3"), "exit=255": (255, "exited with code 255"),
          "signal=9": (137, "was killed by SIGKILL"), "segv": (139, "was killed by SIGSEGV")}
MEANWHILE = {
    "before anybody has joined": ["@2:{death}", "open", "loop=16"],
    "before the first collective": ["open", "@2:{death}", "loop=16"],
    "between collectives": ["open", "allreduce", "@2:{death}", "loop=16"],
    "during a large collective": ["open", "@2:soon:{death}", f"loop={4000000 // k.SLOW**2}"],
    "during many small collectives": ["open", "@2:soon:{death}", "loop=64"],
}


@pytest.mark.parametrize("action, code", [("exit=0", 0), *((d, c) for d, (c, _) in DEATHS.items())])
def test_one_worker_alone_gives_its_code(mark, action, code):
    assert run("-np", 1, ACTOR, action).code == code


@pytest.mark.parametrize("action, code", [("exit=0", 0), *((d, c) for d, (c, _) in DEATHS.items())])
def test_among_plain_programs_the_first_failure_gives_the_code(mark, action, code):
    others = "exit=0" if code == 0 else "sleep=60"
    ended = run("-np", 4, "--grace", GRACE, ACTOR, f"@2:{action}", others)
    assert ended.code == code and ended.took < (1 + GRACE) * k.SLOW, ended
    if code:
        assert "rank 2 on host localhost " + DEATHS[action][1] in ended.err, ended


@pytest.mark.parametrize("when", MEANWHILE)
@pytest.mark.parametrize("death", DEATHS)
def test_every_survivor_names_the_one_that_died(mark, death, when):
    code, cause = DEATHS[death]
    ended = run("-np", 4, "-H", "localhost:2,127.0.0.1:2", "--grace", GRACE, ACTOR,
                *(a.replace("{death}", death) for a in MEANWHILE[when]))
    assert ended.code == code and ended.took < (1 + GRACE) * k.SLOW, ended
    for survivor in (0, 1, 3):
        words = [line for line in ended.err.splitlines() if line.startswith(f"[{survivor}]<stderr>:error:")]
        assert len(words) == 1 and f"rank 2 on host 127.0.0.1 {cause}" in words[0], ended
    assert f"horovodrun: rank 2 on host 127.0.0.1 {cause}" in ended.err, ended


@pytest.mark.parametrize("np", [3, 8])
@pytest.mark.parametrize("before", [["open", "allreduce"], ["open"], []], ids=["between", "open", "never"])
def test_leaving_with_0_too_early_is_named_too(mark, np, before):
    """Nobody failed before the survivors did, so the code is theirs; their words name who left."""
    ended = run("-np", np, "--grace", GRACE, ACTOR, *before, "@1:exit=0", *([] if before else ["open"]), "loop=16")
    assert ended.code == 9 and ended.took < (1 + GRACE) * k.SLOW, ended
    for survivor in {*range(np)} - {1}:
        assert any(line.startswith(f"[{survivor}]<stderr>:error:") and "rank 1 on host localhost" in line
                   for line in ended.err.splitlines()), ended


def test_a_worker_that_stands_in_the_kernel_does_not_hold_up_the_end(mark):
    """Whom a cgroup of version 1 has frozen, SIGKILL does not end."""
    folder = pathlib.Path(f"/sys/fs/cgroup/freezer/corro-test-{os.getpid()}")
    try:
        folder.mkdir()
    except OSError as why:
        pytest.skip(f"nobody can be frozen here: {why}")
    job = k.start("-np", 2, "--grace", 1, "sleep", 60, stderr=subprocess.PIPE, text=True)
    try:
        assert k.eventually(lambda: len(k.cast_of(job.pid)["worker"]) == 2)
        stuck = k.cast_of(job.pid)["worker"][0]
        (folder / "cgroup.procs").write_text(str(stuck))
        (folder / "freezer.state").write_text("FROZEN")
        assert k.eventually(lambda: (folder / "freezer.state").read_text() == "FROZEN\n")
        began = time.monotonic()
        job.send_signal(signal.SIGTERM)
        err = job.communicate(timeout=20 * k.SLOW)[1]
        assert job.returncode == 143 and time.monotonic() - began < (1 + 1) * k.SLOW + 0.5, err
        assert f"process {stuck} was killed, but stands in the kernel" in err
    finally:
        (folder / "freezer.state").write_text("THAWED")
        k.end(job)
        assert k.eventually(lambda: subprocess.call(["rmdir", folder], stderr=subprocess.DEVNULL) == 0)


def test_a_worker_that_is_stopped_hears_that_it_is_to_end(mark):
    program = "[ $RANK = 0 ] && sleep 0.5 && exit 3; trap 'echo saved; exit 0' TERM; kill -STOP $$; sleep 60"
    ended = run("-np", 2, "sh", "-c", program)
    assert ended.code == 3 and "[1]<stdout>:saved\n" in ended.out, ended


def test_leaving_with_0_after_the_last_collective_harms_nobody(mark):
    for _ in range(10):
        ended = run("-np", 4, ACTOR, "open", "allreduce", "@0:exit=0", "@2:exit=0", "sleep=0.05")
        assert ended.code == 0, ended


def test_what_ignores_sigterm_is_killed_after_the_grace(mark):
    ended = run("-np", 3, "--grace", 1, ACTOR, "ignore-term", "child", "daemon", "@0:exit=3", "sleep=60")
    assert ended.code == 3 and 1 <= ended.took < 2.5 * k.SLOW, ended
    assert "SIGKILL" in ended.err, ended


def test_a_daemon_left_by_a_good_worker_does_not_hold_up_the_end(mark):
    ended = run("-np", 2, ACTOR, "daemon", "child", "exit=0")
    assert ended.code == 0 and ended.took < 1 * k.SLOW, ended


def test_a_program_that_is_not_there_is_127_and_one_that_may_not_run_126(mark, tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("no program")
    assert run("-np", 2, "no-such-program").code == 127
    assert run("-np", 2, plain).code == 126


@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_launcher_ends_the_job_with_its_code(mark, signo):
    job = k.start("-np", 2, "sleep", "60")
    assert k.eventually(lambda: len(k.cast_of(job.pid)["worker"]) == 2)
    job.send_signal(signo)
    assert job.wait(timeout=5 * k.SLOW) == 128 + signo


def test_a_second_signal_does_not_wait_for_the_grace(mark):
    job = k.start("-np", 2, "--grace", "30", ACTOR, "ignore-term", "print=ready", "sleep=60", stdout=-1)
    assert job.stdout.readline() and job.stdout.readline()
    began = time.monotonic()
    job.send_signal(signal.SIGINT)
    time.sleep(0.2)
    job.send_signal(signal.SIGINT)
    assert job.wait(timeout=10 * k.SLOW) == 130 and time.monotonic() - began < 2 * k.SLOW


def test_ctrl_c_on_a_terminal_reaches_the_launcher_alone(mark):
    """The workers get the launcher's SIGTERM and not the terminal's SIGINT."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(k.HOROVODRUN, [k.HOROVODRUN, "-np", "2", "sh", "-c",
                                "trap 'echo term; exit 0' TERM; trap 'echo int; exit 0' INT; echo ready; "
                                "while :; do sleep 0.05; done"])
    seen = b""
    while seen.count(b"ready") < 2:
        seen += os.read(terminal, 4096)
    os.write(terminal, b"\x03")
    try:
        while more := os.read(terminal, 4096):
            seen += more
    except OSError:
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 130
    assert seen.count(b"term") == 2 and b"<stdout>:int" not in seen, seen


def test_a_launcher_that_stands_still_loses_its_lease(mark):
    job = k.start("-np", 2, "-H", "localhost:1,127.0.0.1:1", "--grace", "1", "sleep", "60")
    assert k.eventually(lambda: len(k.cast_of(job.pid)["worker"]) == 2)
    cast = k.cast_of(job.pid)
    job.send_signal(signal.SIGSTOP)
    began = time.monotonic()
    gone = k.eventually(lambda: not set(cast["worker"] + cast["agent"]) & set(k.processes()), timeout=8)
    assert gone and 3.5 < time.monotonic() - began
    job.send_signal(signal.SIGCONT)
    assert job.wait(timeout=5 * k.SLOW) == 121
