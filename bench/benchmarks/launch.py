"""Whole jobs of a program that does nothing, from the first process to the prompt."""
import argparse
import contextlib
import pathlib
import re
import shutil
import subprocess
import sys
import time

from .common import BIN, FOLDER, TOP, build, descendants, install_peers, interleaved, promise, quartiles, ratio

# Of the same kind of machine, on another day: whole jobs of `true` in ms.  They take seconds and are not run again.
RECORDED = {"torchrun": {2: 2058, 16: 2068, 64: 2248, 256: 2656}, "Horovod": {2: 1767, 16: 3606, 64: 11580, 256: 40716}}


def fit(points):
    """(a, b) of a + b * np, by least squares of the relative errors: np 256 is not worth more than np 2."""
    weights = [1 / (y * y) for _, y in points]
    total = sum(weights)
    x_mean = sum(w * x for w, (x, _) in zip(weights, points)) / total
    y_mean = sum(w * y for w, (_, y) in zip(weights, points)) / total
    spread = sum(w * (x - x_mean) ** 2 for w, (x, _) in zip(weights, points))
    slope = sum(w * (x - x_mean) * (y - y_mean) for w, (x, y) in zip(weights, points)) / spread
    return y_mean - slope * x_mean, slope


def memory(command, np):
    """[(name, RSS, PSS in MiB)] of all that a launcher starts beside its workers, while these sleep."""
    process = subprocess.Popen(list(map(str, command)) + ["sleep", "60"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            time.sleep(0.1)
            names = {pid: pathlib.Path(f"/proc/{pid}/comm").read_text().strip() for pid in descendants(process.pid)}
            if list(names.values()).count("sleep") == np:
                break
        rows = []
        for pid, name in names.items():
            if name != "sleep":
                text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
                rss, pss = (int(re.search(rf"^{key}: +(\d+)", text, re.M).group(1)) / 1024 for key in ("Rss", "Pss"))
                rows.append((name, rss, pss))
        return rows
    finally:
        process.terminate()
        process.wait()


def on_hosts(sizes, rounds):
    """One worker that does nothing on each of so many hosts with sshds of their own (tests/system/testbed.py)."""
    sys.path.insert(0, str(TOP / "tests/system"))
    import testbed
    rows = []
    print(f"{'hosts':>5}  {'contender':<12} {'median ms':>9}   times as long as Corro (quartiles)   failed or hung")
    for n in sizes:
        names = [f"h{i}" for i in range(1, n + 1)]
        contenders = {"Corro": [BIN / "horovodrun", "-np", n, "-H", ",".join(f"{name}:1" for name in names), "true"]}
        if shutil.which("mpiexec.mpich"):
            contenders["MPICH"] = ["mpiexec.mpich", "-launcher", "ssh", "-hosts", ",".join(names), "-ppn", 1, "-n", n, "true"]
        if shutil.which("mpirun.openmpi"):
            contenders["Open MPI"] = ["mpirun.openmpi", "--allow-run-as-root", "-H", ",".join(f"{name}:1" for name in names),
                                      "-n", n, "true"]
        with testbed.Cluster(n) as cluster:
            times = interleaved(contenders, rounds, limit=60, popen=cluster["h0"].popen)
            left = cluster.left()
        for name, own in times.items():
            low, middle, high = quartiles([a / b for a, b in zip(own, times["Corro"]) if a and b])
            median, failed = quartiles([t * 1e3 for t in own if t])[1], own.count(None)
            print(f"{n:>5}  {name:<12} {median:>9.1f}   {middle:>6.2f}  ({low:.2f} to {high:.2f}){'':<16}{failed or ''}")
            rows += [("true", n, name, number, t) for number, t in enumerate(own)]
        for peer in contenders:
            if peer != "Corro":
                promise(f"{n} hosts, times as long as {peer}", ratio(times, "Corro", peer), 1 / 3)
        if left:
            print(f"{'':>7}left on the hosts: {left}")
    return rows


STAND_IN = "#!/bin/sh\n# In ssh's place: the host is this one.\nshift\nexec \"$@\"\n"
STAND_INS_WITHIN = 600  # seconds


def on_stand_ins(n):
    """So many hosts that are all this one: what the launcher itself needs for them."""
    sys.path.insert(0, str(TOP / "tests/system"))
    import testbed
    script = FOLDER / "stand-in"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(STAND_IN)
    script.chmod(0o755)
    with testbed.Cluster(0) as cluster:
        began = time.perf_counter()
        job = cluster["h0"].popen([BIN / "horovodrun", "-np", n, "-H", f"n[1-{n}]:1", "--start-timeout", 300, "--rsh-agent",
                                   script, "sleep", "5"], stdin=subprocess.DEVNULL)
        most = descriptors = 0
        while job.poll() is None:
            if time.perf_counter() - began > STAND_INS_WITHIN:
                sys.exit(f"{n} stand-ins: no end within {STAND_INS_WITHIN} s")
            with contextlib.suppress(OSError, AttributeError):
                status = pathlib.Path(f"/proc/{job.pid}/status").read_text()
                most = max(most, int(re.search(r"VmHWM:\s+(\d+)", status).group(1)))
                descriptors = max(descriptors, len(list(pathlib.Path(f"/proc/{job.pid}/fd").iterdir())))
            time.sleep(0.05)
        took = time.perf_counter() - began
    if job.returncode != 0:
        sys.exit(f"{n} stand-ins: the job failed, exit code {job.returncode}")
    print(f"{n} stand-ins: {took - 5:.1f} s besides the 5 that the workers sleep, {most / 1024:.1f} MiB and {descriptors} "
          "descriptors at the most in the launcher")
    return [("sleep 5", n, "stand-ins", 0, took)]


def launch_promises(fits, by_size):
    if "Corro" in fits:
        promise("Corro's first term in ms", fits["Corro"][0], 15)
        promise("Corro's second term by the bare loop's", fits["Corro"][1] / fits["bare loop"][1], 1.2)
    for np, times in by_size.items():
        for peer in times.keys() - {"Corro", "bare loop"}:
            if np >= 64:
                promise(f"np {np}, times as long as {peer}", ratio(times, "Corro", peer), 1)
            elif np == 2 and peer == "MPICH":
                promise(f"np {np}, times as long as {peer}", ratio(times, "Corro", peer), 2)


def run(arguments):
    """Whole jobs of a program that does nothing, from the first process to the prompt."""
    parser = argparse.ArgumentParser(prog="bench/run launch")
    parser.add_argument("--np", default="2,16,64,256", help="numbers of workers (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--hosts", help="numbers of hosts, for jobs over ssh: 4,16,64")
    parser.add_argument("--stand-ins", type=int, help="a job on so many hosts that are all this machine: 1024")
    parser.add_argument("--programs", default="true,sleep 0.5", help="what the workers run (default: %(default)s)")
    chosen = parser.parse_args(arguments)
    install_peers()
    build("horovodrun", "spawn_floor")
    header = ("program", "np", "contender", "round", "seconds")
    if chosen.hosts or chosen.stand_ins:
        rows = on_hosts(list(map(int, chosen.hosts.split(","))), chosen.rounds) if chosen.hosts else []
        return header, rows + (on_stand_ins(chosen.stand_ins) if chosen.stand_ins else [])

    launchers = {"bare loop": [BIN / "spawn_floor"], "Corro": [BIN / "horovodrun", "-np"]}
    for name, program, *extra in (("MPICH", "mpiexec.mpich", "-n"),
                                  ("Open MPI", "mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n")):
        if shutil.which(program):
            launchers[name] = [program, *extra]
        else:
            print(f"{name} is not installed ({program}): not compared")
    sizes, rows = list(map(int, chosen.np.split(","))), []
    for program in chosen.programs.split(","):
        words = program.split()
        nap = float(words[1]) if words[0] == "sleep" else 0.0
        print(f"workers run `{program}`" + (", whose time is subtracted" if nap else ""))
        print(f"{'np':>4}  {'contender':<12} {'median ms':>9}   ratio to the bare loop (quartiles)   failed or hung")
        points, by_size = {name: [] for name in launchers}, {}
        for np in sizes:
            contenders = {name: [*own, np, *words] for name, own in launchers.items()}
            times = {name: [t and t - nap for t in own]
                     for name, own in interleaved(contenders, chosen.rounds, limit=5 + nap).items()}
            by_size[np] = times
            for name, own in times.items():
                low, middle, high = quartiles([a / b for a, b in zip(own, times["bare loop"]) if a and b])
                median = quartiles([t * 1e3 for t in own if t])[1]
                failed = own.count(None)
                if failed < len(own):
                    points[name].append((np, median))
                print(f"{np:>4}  {name:<12} {median:>9.1f}   {middle:>6.2f}  ({low:.2f} to {high:.2f})"
                      f"{'':<16}{failed if failed else ''}")
                rows += [(program, np, name, number, t) for number, t in enumerate(own)]
            for name, known in RECORDED.items():
                if np in known and not nap:
                    print(f"{np:>4}  {name:<12} {known[np]:>9.1f}   recorded, not run")
        fits = {name: fit(own) for name, own in points.items() if len(own) > 1}
        for name, (a, b) in fits.items():
            print(f"      {name:<12} {a:.1f} ms + {b:.3f} ms for each worker")
        launch_promises(fits, by_size)
    most = max(sizes)
    print(f"memory while {most} workers sleep, MiB: resident (proportional)")
    for name, own in launchers.items():
        if name != "bare loop":
            parts = ", ".join(f"{n} {rss:.1f} ({pss:.1f})" for n, rss, pss in memory([*own, most], most))
            print(f"      {name:<12} {parts}")
    return header, rows
