"""Rounds of allreduce programs: every contender once in each, in a random order."""
import contextlib
import dataclasses
import os
import pathlib
import random
import re
import signal
import subprocess
import tempfile
import threading
import time

from .common import BIN, FOLDER, end_all, show

FIELDS = ("np", "hosts", "rate", "control", "round", "contender", "role", "bytes", "repeats", "samples", "median_us",
          "min_us", "lower_us", "upper_us", "max_us", "verdict", "memory_kib", "core_distance_ns", "stolen", "busy")
# A line of bench/allreduce.h, whatever a launcher writes in front of it; ref_shm has no memory at its end.
LINE = re.compile(r"(?:^|[:,])(\d+),(\d+),(\d+)" + r",(\d+\.\d+)" * 5 + r",(ok|WRONG)(?:,(\d+))?\s*$")
NOT_OFFERED = 77  # exit code of a program whose library lacks what is to be measured
MOST_FAILURES = 3  # then a contender no longer takes part


@dataclasses.dataclass(frozen=True)
class Setting:
    """One world of ranks.  No hosts: this machine, without namespaces."""
    np: int
    hosts: int = 0
    rate: str = ""
    control: str = ""

    def columns(self):
        return {key: value or "" for key, value in dataclasses.asdict(self).items()}

    def __str__(self):
        if not self.hosts:
            return f"np {self.np} on this machine"
        return f"np {self.np} on {self.hosts} hosts, {self.rate}, {self.control}"


class Failed(Exception):
    """A run came to no good end; `code` is the exit code of the first process that failed."""

    def __init__(self, text, code):
        super().__init__(text)
        self.code = code


class Clock:
    """Shares of the time of all cores since the last look."""

    def __init__(self):
        self.last = self.read()

    @staticmethod
    def read():
        words = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()
        return list(map(int, words[1:9]))  # user, nice, system, idle, iowait, irq, softirq, steal

    def shares(self):
        before, self.last = self.last, self.read()
        spent = [now - then for now, then in zip(self.last, before)]
        return [one / max(1, sum(spent)) for one in spent]

    def stolen(self):
        """What the hypervisor has given to others."""
        return self.shares()[7]

    def busy(self):
        shares = self.shares()
        return 1 - shares[3] - shares[4]


def busy_now(seconds=0.2):
    """What other processes use of the cores, while none of ours runs."""
    clock = Clock()
    time.sleep(seconds)
    return clock.busy()


def start_here(_, argv, env, **options):
    return subprocess.Popen([str(word) for word in argv], env={**os.environ, **env}, **options)


def start_in(cluster):
    return lambda host, argv, env, **options: cluster[host].popen(argv, env=env, **options)


def end_all_in(cluster):
    """What a failed run has left on the hosts would slow down the next."""
    def end():
        for processes in cluster.left(timeout=2).values():
            for process in processes:
                with contextlib.suppress(OSError):
                    os.kill(process.pid, signal.SIGKILL)
    return end


def run_once(contender, measurement, limit, start):
    """[dict of one size]; raises Failed."""
    sizes = tuple(size for size in measurement.sizes if size <= contender.most_bytes)
    measurement = dataclasses.replace(measurement, sizes=sizes)
    if not sizes:
        return []
    with tempfile.TemporaryDirectory(dir=FOLDER) as scratch, tempfile.TemporaryFile("w+") as errors:
        processes, late = [], threading.Event()

        def end():
            late.set()
            for process in processes:
                end_all(process)

        guard = threading.Timer(limit, end)
        try:
            for number, command in enumerate(contender.commands(measurement, scratch)):
                processes.append(start(command.host, command.argv, command.env, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL if number else subprocess.PIPE, stderr=errors,
                                       text=True, start_new_session=True))
            guard.start()
            cells = read_cells(processes[0].stdout)
            codes = [process.wait() for process in processes]
        finally:
            guard.cancel()
            for process in processes:
                if process.poll() is None:
                    end_all(process)
                    process.wait()
            with contextlib.suppress(IndexError):
                processes[0].stdout.close()
        code = next((code for code in codes if code), 0)
        if late.is_set():
            raise Failed(f"no end within {limit} s", code)
        if code or len(cells) < len(sizes):
            errors.seek(0)
            said = [line.strip() for line in errors.read().splitlines() if line.strip()]
            raise Failed(f"exit code {code}: {said[0] if said else 'without a word'}", code)
        return cells


def read_cells(stream):
    clock, cells = Clock(), []
    for line in stream:
        if found := LINE.search(line):
            values = dict(zip(FIELDS[7:17], found.groups(default="")))
            cells.append({**values, "stolen": f"{clock.stolen():.5f}"})
    return cells


def settle_cores(seconds):
    """Keeps all cores busy and returns how far apart the first two then are, in ns."""
    done = subprocess.run([BIN / "core_distance", f"seconds={seconds}"], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def play(contenders, setting, measurement, options, write, start=start_here, clean=lambda: None):
    """All rounds of one setting; write(row) for each cell.  Returns {contender: [what went wrong]}."""
    failures, playing = {}, list(contenders)
    for number in range(options.rounds):
        random.shuffle(playing)
        busy = busy_now()
        for place, contender in enumerate(list(playing)):
            show(f"  {setting}: round {number + 1} of {options.rounds}, {place + 1} of {len(playing)}: {contender.name}")
            distance = settle_cores(options.settle)
            try:
                cells = run_once(contender, measurement, options.limit, start)
            except Failed as failed:
                said = failures.setdefault(contender.name, [])
                said.append(str(failed))
                clean()
                if failed.code == NOT_OFFERED or len(said) >= MOST_FAILURES:
                    playing.remove(contender)
                continue
            for cell in cells:
                write({**setting.columns(), "round": number, "contender": contender.name, "role": contender.role, **cell,
                       "core_distance_ns": distance, "busy": f"{busy:.3f}"})
    show("")
    return failures
