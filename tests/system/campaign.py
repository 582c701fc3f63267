#!/usr/bin/env python3
"""Kills one process of a running job with -9 at a random moment, again and again, and looks for leftovers.

Runs as the first process of its own namespaces (processes, network, mounts, IPC), so that whatever is there
afterwards was left by the job:  unshare … campaign.py KIND RUNS SEED
KIND: launcher, session, guard, agent, worker, or several joined by '+'; or nobody, where jobs of eight programs that do
nothing come and go by themselves; or control, which leaves something of every sort behind to show that it would be seen.
"""
import contextlib
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time

import corro_system as k

# Workers with a child, and a grandchild in its own session, all deaf to SIGTERM, that talk to each other.
JOB = ["-np", "3", "-H", "localhost:2,127.0.0.1:1", "--grace", "0.2", k.ACTOR,
       "ignore-term", "child", "daemon", "open", "loop=1000"]
LATEST_BLOW = 0.25  # seconds after the start; a job is up after some 20 ms
PATIENCE = 10.0
WATCHED = ("/tmp", "/dev/shm", "/run")  # where programs leave files


def cgroups():
    """Those of workers below the cgroups of this process, where its jobs make theirs.  No namespace hides those of
    other jobs on the machine; they are elsewhere, or were there before."""
    top, found = pathlib.Path("/sys/fs/cgroup"), set()
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        hierarchy = top / (controllers.removeprefix("name=") or "unified")  # "" is version 2, alone or beside version 1
        if not controllers and not hierarchy.is_dir():
            hierarchy = top
        found.update(hierarchy.joinpath(path.lstrip("/")).glob("**/corro-[0-9]*"))
    return found


OLD_CGROUPS = cgroups()


def sh(*command):
    subprocess.run(list(map(str, command)), check=True)


def prepare():
    """Empty folders, but for the project itself where it lies in one of them."""
    sh("ip", "link", "set", "lo", "up")
    for folder in WATCHED:
        inside = [p for p in (k.TOP, k.BUILD) if str(p).startswith(folder + "/")][:1]
        for project in inside:
            sh("mount", "--bind", project, "/mnt")
        sh("mount", "-t", "tmpfs", "tmpfs", folder)
        for project in inside:
            project.mkdir(parents=True)
            sh("mount", "--move", "/mnt", project)


def files_in(folder):
    for path in pathlib.Path(folder).iterdir():
        if path in (k.TOP, k.BUILD):
            continue
        if path.is_dir() and not path.is_symlink():
            yield from files_in(path)
        else:
            yield str(path)


def reap():
    """We are what orphans are handed to, and zombies are not leftovers."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def leftovers():
    reap()
    files = [path for folder in WATCHED for path in files_in(folder)]
    sockets = []
    for table in ("tcp", "tcp6", "unix"):
        rows = pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        time_wait = "06"
        sockets += [table + " " + row for row in rows if table == "unix" or row.split()[3] != time_wait]
    segments = pathlib.Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    others = [f"{pid} {stat}" for pid, stat in k.processes().items() if pid != os.getpid()]
    return others + files + sockets + segments + [f"cgroup {path}" for path in cgroups() - OLD_CGROUPS]


def victims(launcher, kinds):
    cast = k.cast_of(launcher)
    cast["session"] = cast["guard"]  # here the guard is the session's process; over ssh it is another
    return [random.choice(cast[kind]) if cast[kind] else None for kind in kinds]


def one_run(kinds):
    launcher = subprocess.Popen([k.HOROVODRUN, *JOB], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE)
    time.sleep(random.uniform(0, LATEST_BLOW * k.SLOW))
    # So early that there is no such process yet: look until there is.
    chosen = k.eventually(lambda: all(v := victims(launcher.pid, kinds)) and v, timeout=5)
    for victim in chosen:
        with contextlib.suppress(ProcessLookupError):  # the first blow may have ended the second victim
            os.kill(victim, signal.SIGKILL)
    began = time.monotonic()
    words = launcher.communicate(timeout=PATIENCE * k.SLOW)[1].decode()
    clean = k.eventually(lambda: not leftovers(), timeout=PATIENCE)
    return {"code": launcher.returncode, "clean_after": time.monotonic() - began, "words": words,
            "left": [] if clean else leftovers()}


def quiet_run():
    done = subprocess.run([k.HOROVODRUN, "-np", "8", "true"], stdin=subprocess.DEVNULL, capture_output=True)
    return {"code": done.returncode, "words": done.stderr.decode(), "left": []}


def leave_something():
    pathlib.Path("/tmp/a-file").touch()
    pathlib.Path("/dev/shm/a-segment").touch()
    sh(k.ACTOR, "daemon")
    listener = socket.create_server(("127.0.0.1", 0))
    reap()
    return listener


def main():
    if sys.argv[1] == "control":
        prepare()
        with leave_something():
            return print(json.dumps(leftovers()))
    kinds, runs, seed = sys.argv[1].split("+"), int(sys.argv[2]), int(sys.argv[3])
    random.seed(seed)
    prepare()
    before = leftovers()
    if kinds == ["nobody"]:
        ended = [quiet_run() for _ in range(runs)]
        clean = k.eventually(lambda: not leftovers(), timeout=PATIENCE)
        ended[-1]["left"] = [] if clean else leftovers()
        return print(json.dumps({"before": before, "runs": ended}))
    print(json.dumps({"before": before, "runs": [one_run(kinds) for _ in range(runs)]}))


if __name__ == "__main__":
    main()
