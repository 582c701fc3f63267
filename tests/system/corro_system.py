"""The small language of the system tests: jobs, the processes they are made of, and hosts' leftovers."""
import os
import pathlib
import signal
import subprocess
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("CORRO_BUILD", TOP / "build/release"))
HOROVODRUN = str(BUILD / "bin/horovodrun")
ACTOR = str(BUILD / "bin/actor")
TRAIN = str(BUILD / "bin/train")
WRITE_MUCH = str(BUILD / "bin/write_much")

# Sanitizers make everything slower, and some waits are for them only.
SLOW = 4 if BUILD.name in ("asan", "tsan") else 1


class Ended:
    """How a finished job went."""

    def __init__(self, code, out, err, took):
        self.code, self.out, self.err, self.took = code, out, err, took

    def __repr__(self):
        return f"code {self.code} after {self.took:.2f} s\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


def run(*arguments, timeout=30, env=None, cwd=None):
    """Runs horovodrun to its end."""
    began = time.monotonic()
    done = subprocess.run([HOROVODRUN, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=timeout * SLOW, env={**os.environ, **(env or {})}, cwd=cwd)
    return Ended(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"),
                 time.monotonic() - began)


def start(*arguments, **options):
    """Starts horovodrun and returns at once."""
    return subprocess.Popen([HOROVODRUN, *map(str, arguments)], stdin=subprocess.DEVNULL, **options)


def eventually(what, timeout=10.0):
    """Waits until what() is true, and returns it; the last answer if that does not happen in time."""
    until = time.monotonic() + timeout * SLOW
    while not (answer := what()) and time.monotonic() < until:
        time.sleep(0.01)
    return answer


def stat_of(pid):
    """(name, state, parent), or None if it is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    name, rest = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()
    return name, rest[0], int(rest[1])


def processes():
    """{pid: (name, state, parent)} of all that live; zombies do not."""
    found = {int(p): stat_of(p) for p in os.listdir("/proc") if p.isdigit()}
    return {pid: stat for pid, stat in found.items() if stat and stat[1] not in "ZX"}


def children_of(pid, all_processes=None):
    everything = all_processes or processes()
    return sorted(p for p, (_, _, parent) in everything.items() if parent == pid)


def descendants_of(pid):
    everything = processes()
    found, front = [], [pid]
    while front:
        front = [c for p in front for c in children_of(p, everything)]
        found += front
    return found


def leads_its_group(pid):
    try:
        return os.getpgid(pid) == pid
    except ProcessLookupError:
        return False


def cast_of(launcher):
    """{kind: [pids]} of a running job."""
    everything = processes()
    guards = children_of(launcher, everything)
    agents = [a for g in guards for a in children_of(g, everything)]
    # An agent's children are also the orphans that it adopted; a worker leads its process group.
    workers = [w for a in agents for w in children_of(a, everything) if leads_its_group(w)]
    return {"launcher": [launcher], "guard": guards, "agent": agents, "worker": workers}


def marked(mark):
    """Living processes that were started with this text in their environment."""
    found = []
    for pid in processes():
        try:
            if mark.encode() in pathlib.Path(f"/proc/{pid}/environ").read_bytes():
                found.append(pid)
        except OSError:
            pass
    return found


def end(process, signo=signal.SIGKILL):
    if process.poll() is None:
        process.send_signal(signo)
    process.wait(timeout=10)
