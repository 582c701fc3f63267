"""Jobs that are started, read or given up in awkward ways."""
import os
import resource
import signal
import subprocess
import time

import corro_system as k
from corro_system import run


def test_whoever_ignores_sigchld_may_start_a_job(mark):
    """Else the kernel would reap our children before we can."""
    job = k.start("-np", 2, "true", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert job.wait(timeout=5 * k.SLOW) == 0


def test_closed_descriptors_are_not_mistaken_for_the_jobs_own(mark):
    def close_all():
        for fd in (0, 1, 2):
            os.close(fd)
    job = subprocess.Popen([k.HOROVODRUN, "-np", "2", "sh", "-c", "echo out; echo err >&2; exit 3"],
                           preexec_fn=close_all)
    assert job.wait(timeout=5 * k.SLOW) == 3


def test_a_host_that_cannot_even_be_tried_was_not_lost(mark):
    few = (12, 12)
    job = k.start("-np", 1, "true", stderr=subprocess.PIPE, text=True,
                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, few))
    _, err = job.communicate(timeout=10 * k.SLOW)
    assert job.returncode == 125 and "nothing was started" in err and "Too many open files" in err, err


def test_a_program_with_an_endless_name_is_still_not_found(mark):
    ended = run("-np", 1, "x" * 100_000)
    assert ended.code == 127, ended


def test_what_cannot_be_executed_is_126_and_says_why(mark, tmp_path):
    text, script = tmp_path / "text", tmp_path / "script"
    text.write_text("no program")
    script.write_text("#!/no/such/python\n")
    for program, why in ((text, "Exec format error"), (script, "names an interpreter that is not there")):
        program.chmod(0o755)
        ended = run("-np", 1, program)
        assert ended.code == 126 and why in ended.err, ended


def test_a_second_signal_ends_a_launcher_whose_reader_stands_still(mark):
    reader, writer = os.pipe()
    job = k.start("-np", 1, "sh", "-c", "echo ready >&2; yes", stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert b"ready" in job.stderr.readline()
    assert k.eventually(lambda: k.cast_of(job.pid)["worker"])
    job.send_signal(signal.SIGINT)
    assert k.eventually(lambda: not k.children_of(job.pid))
    job.send_signal(signal.SIGINT)
    assert job.wait(timeout=5 * k.SLOW) in (130, -signal.SIGINT)
    os.close(reader)
    job.stderr.close()


def test_a_verbose_job_outlives_a_terminal_that_stands_still_for_longer_than_a_lease(mark):
    reader, writer = os.pipe()
    script = "if [ $HOROVOD_RANK = 0 ]; then yes | head -c 500000 >&2; else sleep 7; fi"
    job = k.start("-np", 2, "--verbose", "sh", "-c", script, stderr=writer)
    os.close(writer)
    time.sleep(6.5)
    with open(reader, "rb") as terminal:
        seen = terminal.read()
    assert job.wait(timeout=5 * k.SLOW) == 0, seen[-1000:]
    assert b"rank 1 on host localhost exited with code 0" in seen


def test_workers_whose_agent_is_asked_to_end_have_their_grace(mark):
    script = "trap 'sleep 0.5; echo saved; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    job = k.start("-np", 1, "sh", "-c", script, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert b"ready" in job.stdout.readline()
    os.kill(k.cast_of(job.pid)["agent"][0], signal.SIGTERM)
    out, err = job.communicate(timeout=10 * k.SLOW)
    assert job.returncode == 121 and b"saved" in out and b"its agent got SIGTERM" in err, err


def test_workers_whose_launcher_is_killed_may_write_in_their_grace(mark, tmp_path):
    """There is nobody to read it, but nobody has to wait in write(2) either."""
    script = f"trap 'yes | head -c 4000000; echo saved > {tmp_path}/saved; exit 0' TERM; echo ready; " \
             "while :; do sleep 0.05; done"
    job = k.start("-np", 1, "sh", "-c", script, stdout=subprocess.PIPE)
    assert b"ready" in job.stdout.readline()
    job.kill()
    assert k.eventually((tmp_path / "saved").exists, timeout=4)
    job.communicate()


def test_the_last_words_of_a_worker_that_is_lost_with_its_host_are_heard(mark):
    job = k.start("-np", 1, "sh", "-c", "echo ready >&2; printf 'last words'; exec sleep 60",
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert b"ready" in job.stderr.readline()
    time.sleep(0.3)
    os.kill(k.cast_of(job.pid)["agent"][0], signal.SIGKILL)
    out, _ = job.communicate(timeout=10 * k.SLOW)
    assert job.returncode == 121 and out == b"[0]<stdout>:last words"
