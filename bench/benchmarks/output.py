"""Workers that write much, beside the same bytes through two cats in a pipe."""
import argparse
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys

from .common import BIN, FOLDER, build, interleaved, promise, quartiles, ratio


def tagged(rank, written):
    """What Corro makes of it: a tag in front of whatever follows a line's end or a carriage return."""
    return re.sub(rb"[^\r\n]*[\r\n]", lambda line: b"[%d]<stdout>:" % rank + line[0], written)


def check_output(ours, np, each, logs):
    """Whether files and stdout hold each worker's bytes, no line torn; ends with what is wrong."""
    shown = {rank: hashlib.sha256() for rank in range(np)}
    command = f"{ours} --output-filename {logs} sh -c '{BIN}/write_much {each}; echo'"
    with subprocess.Popen(["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        for line in process.stdout:
            for part in re.findall(rb"[^\r\n]*[\r\n]", line):
                tag = re.match(rb"\[(\d+)\]<stdout>:", part) or sys.exit(f"a torn line: {part[:100]}")
                shown[int(tag[1])].update(part)
    for rank in range(np):
        written = subprocess.run([BIN / "write_much", str(each), str(rank)], stdout=subprocess.PIPE, check=True).stdout
        expected = tagged(rank, written + b"\n")
        folder = f"rank.{rank:0{len(str(np - 1))}}"
        if (logs / folder / "stdout").read_bytes() != expected:
            sys.exit(f"rank {rank}: its file differs")
        if shown[rank].digest() != hashlib.sha256(expected).digest():
            sys.exit(f"rank {rank}: what was shown differs")
    print(f"{np} workers, {each} bytes each: files and stdout hold every byte, and no line is torn")


def run(arguments):
    """Workers that write much, beside the same bytes through two cats in a pipe."""
    parser = argparse.ArgumentParser(prog="bench/run output")
    parser.add_argument("--np", type=int, default=64)
    parser.add_argument("--megabytes", type=int, default=64, help="of each worker (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true", help="look at every byte first")
    chosen = parser.parse_args(arguments)
    build("horovodrun", "write_much")
    logs = FOLDER / "output-logs"
    each = chosen.megabytes << 20
    ours = f"{BIN}/horovodrun -np {chosen.np} -H localhost:{chosen.np}"
    if chosen.check:
        check_output(ours, chosen.np, each, logs)
    contenders = {
        "two cats": ["sh", "-c", f"{BIN}/write_much {each * chosen.np} | cat | cat > /dev/null"],
        "tee and cat": ["sh", "-c", f"{BIN}/write_much {each * chosen.np} | tee {logs}.tee | cat > /dev/null"],
        "Corro": ["sh", "-c", f"{ours} {BIN}/write_much {each} | cat > /dev/null"],
        "Corro, with files": ["sh", "-c", f"{ours} --output-filename {logs} {BIN}/write_much {each} | cat > /dev/null"]}
    times = interleaved(contenders, chosen.rounds, limit=600)
    total = each * chosen.np / 1e6
    print(f"{chosen.np} workers, {chosen.megabytes} MiB each")
    print(f"{'contender':<18} {'MB/s':>8}   share of two cats (quartiles)")
    for name, own in times.items():
        low, middle, high = quartiles([b / a for a, b in zip(own, times["two cats"]) if a and b])
        median = quartiles([total / t for t in own if t])[1]
        print(f"{name:<18} {median:>8.0f}   {middle:.2f}  ({low:.2f} to {high:.2f}){'  failed' if None in own else ''}")
    promise("times as long as two cats", ratio(times, "Corro", "two cats"), 2)
    promise("with files, times as long as tee and cat", ratio(times, "Corro, with files", "tee and cat"), 2)
    shutil.rmtree(logs, ignore_errors=True)
    pathlib.Path(f"{logs}.tee").unlink(missing_ok=True)
    return ("contender", "round", "seconds"), [(n, i, t) for n, own in times.items() for i, t in enumerate(own)]
