"""What a user waits for before anything starts, and a host file of 100,000 lines."""
import argparse
import shutil
import subprocess

from .common import BIN, build, install_peers, interleaved, promise, quartiles


def run(arguments):
    """What a user waits for before anything starts, and a host file of 100,000 lines."""
    parser = argparse.ArgumentParser(prog="bench/run cli")
    parser.add_argument("--rounds", type=int, default=15)
    chosen = parser.parse_args(arguments)
    install_peers()
    build("horovodrun", "host_file")

    horovodrun = BIN / "horovodrun"
    contenders = {"true": ["true"],
                  "horovodrun --help": [horovodrun, "--help"],
                  "horovodrun --dry-run, 10 hosts": [horovodrun, "-np", 40, "-H", "127.0.0.[1-10]:4", "--dry-run", "true"]}
    for program in ("mpirun.openmpi", "mpiexec.mpich", "torchrun"):
        if shutil.which(program):
            extra = ["--allow-run-as-root"] if program == "mpirun.openmpi" else []
            contenders[f"{program} --help"] = [program, *extra, "--help"]
        else:
            print(f"{program} is not installed: not compared (pip install torch==2.13.0 has torchrun)")
    times = interleaved(contenders, chosen.rounds, limit=60)
    print(f"{'command':<32} {'median ms':>9}  (quartiles)")
    for name, own in times.items():
        low, middle, high = quartiles([t * 1e3 for t in own if t])
        print(f"{name:<32} {middle:>9.1f}  ({low:.1f} to {high:.1f}){'  failed' if None in own else ''}")
    for name in ("horovodrun --help", "horovodrun --dry-run, 10 hosts"):
        promise(f"{name}, ms", quartiles([t * 1e3 for t in times[name] if t])[1], 30)
    print("\na host file of 100,000 lines, and a plan for 8 workers on each host:", flush=True)
    subprocess.run([BIN / "host_file"], check=True)
    return ("command", "round", "seconds"), [(n, i, t) for n, own in times.items() for i, t in enumerate(own)]
