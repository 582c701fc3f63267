"""What the benchmarks have in common: peers, builds, rounds and statistics."""
import contextlib
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import threading
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
BIN = TOP / "build/release/bin"
FOLDER = TOP / "build/bench"  # where results are left


def install_peers():
    """What packaging/packages lists for this; without the right to, only what is there is compared."""
    script = f'top={TOP}; . {TOP}/packaging/setup.sh; install_packages bench'
    if subprocess.run(["bash", "-c", script], stdout=subprocess.DEVNULL, check=False).returncode:
        print("the peers could not be installed")


def build(*targets):
    subprocess.run(["cmake", "--preset", "release"], cwd=TOP, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", TOP / "build/release", *targets], check=True, stdout=subprocess.DEVNULL)


def seconds(command, limit, popen=subprocess.Popen):
    """Wall time; None if it failed or hung.  A wait with a time-out would poll, in steps of milliseconds.  A command that
    hangs is ended with all that it has started."""
    began = time.perf_counter()
    process = popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL, start_new_session=True)
    guard = threading.Timer(limit, end_all, [process])
    guard.start()
    code = process.wait()
    took = time.perf_counter() - began
    guard.cancel()
    return took if code == 0 else None


def end_all(process):
    for pid in reversed(descendants(process.pid)):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def promise(text, measured, bound):
    """One line for what we mean to keep: at most `bound`.  Nothing is said of a peer that came to no end."""
    if measured != measured:
        return
    print(f"      {'kept  ' if measured <= bound else 'BROKEN'}  {text}: {measured:.2f}, at most {bound:.2f}")


def ratio(times, one, other):
    """The median of how many times as long `one` took, round by round."""
    return quartiles([a / b for a, b in zip(times[one], times[other]) if a and b])[1]


def quartiles(values):
    if len(values) < 2:
        return (values[0],) * 3 if values else (float("nan"),) * 3
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def show(progress):
    if sys.stderr.isatty():
        print(f"\r{progress:<30}\r", end="", file=sys.stderr, flush=True)


def interleaved(contenders, rounds, limit, popen=subprocess.Popen):
    """{name: [seconds or None, one for each round]}"""
    times = {name: [] for name in contenders}
    for number in range(rounds):
        order = list(contenders)
        random.shuffle(order)
        for name in order:
            times[name].append(seconds(contenders[name], limit, popen))
        show(f"  round {number + 1} of {rounds}")
    show("")
    return times


def descendants(pid):
    """Of a process, with itself."""
    found = [pid]
    for one in found:
        for task in pathlib.Path(f"/proc/{one}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += map(int, task.read_text().split())
    return found
