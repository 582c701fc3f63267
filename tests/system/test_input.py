"""What the launcher is given to read, and a terminal's ways: background, Ctrl-Z, hang-up."""
import hashlib
import os
import pty
import re
import signal
import subprocess
import termios
import time

import corro_system as k
import pytest
from corro_system import HOROVODRUN


def fed(data, *arguments, timeout=60):
    return subprocess.run([HOROVODRUN, *map(str, arguments)], input=data, capture_output=True, timeout=timeout * k.SLOW)


def test_rank_0_reads_and_the_others_have_nothing():
    done = fed(b"hello", "-np", 2, "sh", "-c", "echo $RANK read $(cat)")
    assert sorted(done.stdout.splitlines()) == [b"[0]<stdout>:0 read hello", b"[1]<stdout>:1 read"], done


@pytest.mark.parametrize("to, readers", [("0", {0}), ("2", {2}), ("all", {0, 1, 2}), ("none", set())])
def test_who_reads(to, readers):
    """Beyond what pipes and windows hold, and to the last byte, which is no newline."""
    data = os.urandom(3_000_000)
    done = fed(data, "-np", 3, "--stdin", to, "md5sum")
    full, nothing = (hashlib.md5(d).hexdigest() for d in (data, b""))
    expected = [f"[{rank}]<stdout>:{full if rank in readers else nothing}  -" for rank in range(3)]
    assert sorted(done.stdout.decode().splitlines()) == expected, done


def test_input_from_a_file_is_read_too(tmp_path):
    (tmp_path / "data").write_bytes(os.urandom(1_000_000))
    with open(tmp_path / "data", "rb") as data:
        done = subprocess.run([HOROVODRUN, "-np", "1", "md5sum"], stdin=data, capture_output=True, timeout=60)
    assert hashlib.md5((tmp_path / "data").read_bytes()).hexdigest().encode() in done.stdout


def test_a_worker_that_does_not_read_holds_up_nothing():
    assert fed(b"x" * 10_000_000, "-np", 2, "true").returncode == 0
    done = fed(b"x" * 10_000_000, "-np", 2, "sh", "-c", "exec <&-; sleep 0.2; echo done")
    assert done.stdout.count(b"done") == 2, done


def test_input_comes_as_it_is_typed_and_its_end_is_told_alone():
    process = subprocess.Popen([HOROVODRUN, "-np", "1", "sh", "-c", "read line; echo got $line; cat; echo end; sleep 0.1"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdin.write(b"one\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"[0]<stdout>:got one\n"
    process.stdin.close()
    assert process.stdout.read() == b"[0]<stdout>:end\n" and process.wait(10 * k.SLOW) == 0


class Terminal:
    """A shell with job control on a terminal of its own."""

    def __init__(self):
        pid, self.fd = pty.fork()
        if pid == 0:
            os.environ.update(PS1="$ ", TERM="dumb")
            os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
        self.pid, self.seen = pid, ""
        settings = termios.tcgetattr(self.fd)
        settings[3] &= ~termios.ECHO
        termios.tcsetattr(self.fd, termios.TCSANOW, settings)
        os.set_blocking(self.fd, False)
        self.types("set -b; bind 'set enable-bracketed-paste off' 2>/dev/null; PS1='$ '; echo re''ady\n")
        self.shows("ready")

    def types(self, text):
        os.write(self.fd, text.encode())

    def look(self, most=65536):
        try:
            self.seen += os.read(self.fd, most).decode(errors="replace")
        except (BlockingIOError, OSError):
            pass
        return self.seen

    def shows(self, text, times=1, timeout=10):
        assert k.eventually(lambda: self.look().count(text) >= times, timeout), self.seen

    def close(self):
        os.close(self.fd)
        k.eventually(lambda: os.waitpid(self.pid, os.WNOHANG)[0], 5)


@pytest.fixture
def terminal(mark):
    t = Terminal()
    yield t
    try:
        os.kill(t.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    t.close()


def workers(name):
    return [pid for pid in k.processes() if (stat := k.stat_of(pid)) and stat[0] == name]


def test_a_job_in_the_background_does_not_stop_on_the_terminal(terminal):
    terminal.types(f"{HOROVODRUN} -np 2 sh -c 'sleep 1; echo do''ne' &\n")
    terminal.shows("<stdout>:done", times=2)
    assert "Stopped" not in terminal.look()


def test_a_job_in_the_background_writes_where_the_terminal_would_stop_it(terminal):
    terminal.types("stty tostop\n")
    terminal.types(f"{HOROVODRUN} -np 2 sh -c 'sleep 1; echo do''ne' &\n")
    terminal.shows("<stdout>:done", times=2)
    assert "Stopped" not in terminal.look()


def test_a_job_that_comes_to_the_foreground_reads(terminal):
    terminal.types(f"{HOROVODRUN} -np 1 sh -c 'read line; echo go''t $line' &\n")
    time.sleep(0.7)
    terminal.types("fg\n")
    time.sleep(0.7)
    terminal.types("words\n")
    terminal.shows("<stdout>:got words")


def test_ctrl_z_holds_the_job_and_fg_lets_it_go_on(terminal):
    beat = "i=0; while :; do i=$((i+1)); echo be''at $i; sleep 0.1; done"
    terminal.types(f"{HOROVODRUN} -np 1 sh -c '{beat}'\n")
    terminal.shows("<stdout>:beat 3")
    terminal.types("\x1a")
    terminal.shows("Stopped")
    time.sleep(0.3)
    terminal.look()
    before = terminal.seen.count("beat")
    time.sleep(6)  # longer than the lease
    terminal.look()
    assert terminal.seen.count("beat") == before
    terminal.types("fg\n")
    terminal.shows("beat", times=before + 5)
    assert "was not heard of" not in terminal.seen
    terminal.types("\x03")
    terminal.shows("ended by SIGINT")


def test_the_time_between_ctrl_z_and_fg_is_not_taken_for_a_host_that_does_not_answer(terminal, tmp_path):
    way = tmp_path / "way"
    way.write_text("#!/bin/sh\nsleep 1.5; shift; exec sh -c \"$*\"\n")
    way.chmod(0o755)
    terminal.types(f"{HOROVODRUN} -np 1 -H elsewhere:1 --rsh-agent {way} --disable-cache --start-timeout {3 * k.SLOW} "
                   "echo do''ne\n")
    time.sleep(0.8)
    terminal.types("\x1a")
    terminal.shows("Stopped")
    time.sleep(3 * k.SLOW + 1)
    terminal.types("fg\n")
    terminal.shows("<stdout>:done")


def test_a_terminal_that_hangs_up_ends_the_job(terminal):
    terminal.types(f"{HOROVODRUN} -np 2 sleep 7171\n")
    assert k.eventually(lambda: pgrep("sleep 7171"))
    os.close(terminal.fd)
    terminal.fd = os.open(os.devnull, os.O_RDONLY)
    assert k.eventually(lambda: not pgrep("sleep 7171"), 15)


def pgrep(command):
    return subprocess.run(["pgrep", "-xf", command], capture_output=True).stdout.split()


@pytest.mark.parametrize("signo", [signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH])
def test_signals_for_the_workers_are_passed_on(mark, signo):
    trap = f"trap 'echo heard; exit 0' {signo.value}; echo ready; while :; do sleep 0.05; done"
    process = subprocess.Popen([HOROVODRUN, "-np", "2", "bash", "-c", trap], stdout=subprocess.PIPE, text=True,
                               stdin=subprocess.DEVNULL)
    lines = [process.stdout.readline() for _ in range(2)]
    assert sorted(lines) == ["[0]<stdout>:ready\n", "[1]<stdout>:ready\n"]
    process.send_signal(signo)
    assert sorted(process.stdout.read().splitlines()) == ["[0]<stdout>:heard", "[1]<stdout>:heard"]
    assert process.wait(10 * k.SLOW) == 0


def test_the_umask_is_the_launchers(tmp_path):
    subprocess.run(["sh", "-c", f"umask 027; {HOROVODRUN} -np 1 touch {tmp_path}/made"], check=True,
                   stdin=subprocess.DEVNULL)
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o640


# What a terminal shows

def test_a_job_that_rises_slowly_says_how_far_it_is_and_takes_it_back(terminal):
    actor = k.ACTOR
    terminal.types(f"{HOROVODRUN} -np 3 {actor} @2:sleep=1.5 open print=do''ne\n")
    terminal.shows("starting: 2 of 3 workers in init")
    terminal.shows("<stdout>:done", times=3)
    assert terminal.seen.rindex("\r\x1b[K") < terminal.seen.index("<stdout>:done")
    assert "starting" not in terminal.seen[terminal.seen.index("<stdout>:done"):]


def test_what_is_said_meanwhile_leaves_the_line_about_progress_whole(terminal):
    terminal.types(f"{HOROVODRUN} -np 4 --verbose {k.ACTOR} @3:sleep={1.5 * k.SLOW} @3:exit=0 @2:sleep={4 * k.SLOW} open\n")
    progress = "\r\x1b[Khorovodrun: starting: 2 of 4 workers in init"
    news = "\r\x1b[Khorovodrun: rank 3 on host localhost exited with code 0\r\n"
    terminal.shows(progress + news + progress.removeprefix("\r\x1b[K"))


def test_nothing_stays_of_a_progress_bar_behind_anothers_line(terminal):
    terminal.types(f"{HOROVODRUN} -np 2 sh -c '[ $RANK = 1 ] && sleep 1 && echo sho''rt || printf \"50%% ####...\\r\"'\n")
    terminal.shows("[0]<stdout>:50% ####...\r\x1b[K[1]<stdout>:short\r\n")


def test_last_words_without_a_newline_are_not_run_into(terminal):
    terminal.types(f"{HOROVODRUN} -np 2 sh -c 'sleep $RANK; printf ab''c; exit $RANK'\n")
    terminal.shows("horovodrun: rank 1 on host localhost exited with code 1")
    assert "[0]<stdout>:abc\r\n[1]<stdout>:abc\r\nhorovodrun: rank 1 on" in terminal.seen, terminal.seen


def test_a_terminal_that_stands_still_blocks_no_worker_for_long_and_files_have_all(terminal, tmp_path):
    count = 1_000_000  # more than all buffers hold
    worker = f"seq {count}; touch {tmp_path}/through; sleep 0.1; echo la''st"
    # Nobody reads, so the terminal takes no more than its buffer holds, as after Ctrl-S.
    terminal.types(f"{HOROVODRUN} -np 1 --output-filename {tmp_path}/logs sh -c '{worker}'\n")
    assert k.eventually((tmp_path / "through").exists, 20), terminal.look()
    terminal.shows("bytes of output were not shown, since the terminal did not take them", timeout=20)
    kept = (tmp_path / "logs/rank.0/stdout").read_text().splitlines()
    assert kept == [f"[0]<stdout>:{i}" for i in range(1, count + 1)] + ["[0]<stdout>:last"]


def test_what_the_launcher_says_meanwhile_blocks_no_worker_either(terminal, tmp_path):
    worker = f"[ $RANK = 1 ] || {{ seq 1000000; sleep 2; seq 1000000; touch {tmp_path}/through; }}"
    terminal.types(f"{HOROVODRUN} -np 2 --verbose sh -c '{worker}'\n")  # rank 1 ends at once, and that is said
    assert k.eventually((tmp_path / "through").exists, 20), terminal.look()
    terminal.shows("bytes of output were not shown, since the terminal did not take them", timeout=20)


def test_a_terminal_that_is_slow_blocks_no_worker_for_long_and_files_have_all(terminal, tmp_path):
    count = 1_200_000  # at 20 kB a second: more than six minutes
    terminal.types(f"{HOROVODRUN} -np 1 --output-filename {tmp_path}/logs sh -c 'seq {count}; touch {tmp_path}/through'\n")

    def is_through():
        terminal.look(most=200)
        return (tmp_path / "through").exists()
    assert k.eventually(is_through, 10), terminal.seen[-1000:]
    terminal.shows("bytes of output were not shown, since the terminal did not take them", timeout=20)
    kept = (tmp_path / "logs/rank.0/stdout").read_text().splitlines()
    assert kept == [f"[0]<stdout>:{i}" for i in range(1, count + 1)]


def test_a_terminal_that_stands_still_does_not_hold_up_the_report_in_the_file(terminal, tmp_path):
    terminal.types(f"{HOROVODRUN} -np 1 --output-filename {tmp_path}/logs sh -c 'seq 100000; exit 3'\n")
    assert k.eventually((tmp_path / "logs/failure.json").exists, 20), terminal.look()
    terminal.shows("rank 0 on host localhost exited with code 3")


def test_output_that_is_piped_is_never_dropped():
    """Whoever reads slowly, such as a pager, holds up those who write, and misses nothing."""
    process = subprocess.Popen([HOROVODRUN, "-np", "2", "seq", "100000"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    time.sleep(3)
    assert process.stdout.read().count(b"\n") == 200_000 and process.wait(10 * k.SLOW) == 0


def test_verbose_says_where_the_start_up_went():
    done = subprocess.run([HOROVODRUN, "-np", "2", "--verbose", "true"], capture_output=True, text=True, timeout=60)
    assert re.search(r"start-up: \d+\.\d ms to understand what is wanted; hosts were ready after .*; workers ran after",
                     done.stderr), done
