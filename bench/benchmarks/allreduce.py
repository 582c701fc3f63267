"""Allreduce of Corro, Open MPI, MPICH and Gloo beside the machine's limits: f32, sum, in place."""
import argparse
import csv
import os
import pathlib
import re
import signal
import subprocess
import sys

from . import contenders, report
from .common import FOLDER, TOP, build, install_peers
from .rounds import FIELDS, Setting, end_all_in, play, start_in

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
HOST_GRAMMAR = re.compile(r"(\d+)(?:x(\d+))?")


def size(text):
    found = re.fullmatch(r"(\d+)([KMG]?)B?", text, re.IGNORECASE)
    if not found or int(found[1]) % 4 and not found[2] or not int(found[1]):
        raise argparse.ArgumentTypeError(f"'{text}': expected bytes, a multiple of 4, or 16K, 4M, 1G")
    return int(found[1]) * UNITS[found[2].upper()]


def list_of(kind):
    return lambda text: [kind(word) for word in text.split(",")]


def hosts(text):
    found = HOST_GRAMMAR.fullmatch(text)
    if not found or int(found[1]) < 2:
        raise argparse.ArgumentTypeError(f"'{text}': expected a number of hosts, or 2x2 for two ranks on each of two")
    return int(found[1]), int(found[2] or 1)


def parser():
    result = argparse.ArgumentParser(prog="bench/run allreduce", description=__doc__)
    result.add_argument("--np", type=list_of(int), default=[2, 4, 8], help="numbers of ranks (default: 2,4,8)")
    result.add_argument("--sizes", type=list_of(size),
                        help="of the tensor (default: 4,1K,16K,256K,4M,64M,256M; with --hosts: 4M,64M)")
    result.add_argument("--rounds", type=int, default=31)
    result.add_argument("--cma", type=list_of(str), default=[contenders.ALLOWED, contenders.DENIED],
                        help="cross-memory attach, a table for each (default: allowed,denied)")
    result.add_argument("--only", type=re.compile, default=re.compile(""),
                        help="contenders whose name this regular expression finds")
    result.add_argument("--hosts", type=list_of(hosts), help="jobs on namespace hosts: 2,4,2x2 (two with two ranks each)")
    result.add_argument("--rate", type=list_of(str), default=["1gbit", "10gbit"], help="of a host (default: 1gbit,10gbit)")
    result.add_argument("--control", type=list_of(str), default=["cubic", "bbr"],
                        help="congestion control of all hosts (default: cubic,bbr)")
    result.add_argument("--steal", type=float, default=0.005,
                        help="discard what had more than this share of its time stolen (default: %(default)s)")
    result.add_argument("--samples", type=int, default=5, help="of a size, in each round (default: %(default)s)")
    result.add_argument("--target", type=float, help="seconds for a sample (default: 0.03; with --hosts: 0.2)")
    result.add_argument("--settle", type=float, default=1, help="seconds for which cores spin before a run (default: 1)")
    result.add_argument("--limit", type=float, help="seconds after which a run is ended (default: 300; with --hosts: 90)")
    result.add_argument("--against", metavar="BUILD", action="append", default=[],
                        help="another build of Corro (../other/build/release, with bench_allreduce built), on this machine")
    result.add_argument("--quick", action="store_true", help="whether it works at all: one short round, nothing installed")
    result.add_argument("--report", metavar="CSV", help="measure nothing; print the tables of this file")
    return result


def choose(arguments):
    options = parser().parse_args(arguments)
    if options.quick:
        options.rounds, options.samples, options.target, options.settle = 1, 3, 0.002, 0.02
    # Between hosts many operations make a sample, so that what the link lets pass in a burst does not count.
    options.target = options.target or (0.2 if options.hosts else 0.03)
    options.limit = options.limit or (90 if options.hosts else 300)
    if not options.sizes:
        options.sizes = list(map(size, ("4M,64M" if options.hosts else "4,1K,16K,256K,4M,64M,256M").split(",")))
    return options


def run(arguments):
    options = choose(arguments)
    if options.report:
        with open(options.report, newline="") as file:
            rows = list(csv.DictReader(file))
        return finish(rows, {}, options, options.report)
    if not options.quick:
        install_peers()
    build("horovodrun", "bench_allreduce")
    for sentence in contenders.why_absent():
        print(sentence)
    path = FOLDER / f"allreduce{'-hosts' if options.hosts else ''}{'-quick' if options.quick else ''}.csv"
    rows, failures = [], {}
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ended early, by whatever, the tables are still printed
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()

        def write(row):
            rows.append({key: str(value) for key, value in row.items()})
            writer.writerow(row)
            file.flush()

        try:
            (between_hosts if options.hosts else on_this_machine)(options, write, failures)
        except KeyboardInterrupt:
            print("\ninterrupted: the tables are of what was measured until now")
    return finish(rows, failures, options, path)


def measurement(options):
    return contenders.Measurement(tuple(options.sizes), options.samples, options.target)


def on_this_machine(options, write, failures):
    for np in options.np:
        playing = [one for one in contenders.on_this_machine(np, options.cma) if options.only.search(one.name)]
        playing += [contenders.other_build(build_folder, np) for build_folder in options.against]
        failures[Setting(np)] = play(playing, Setting(np), measurement(options), options, write)


def between_hosts(options, write, failures):
    sys.path.insert(0, str(TOP / "tests/system"))
    import testbed
    if reason := testbed.why_not():
        sys.exit(f"there can be no hosts: {reason}")
    for count, each in options.hosts:
        names = [f"h{i}" for i in range(1, count + 1)]
        playing = [one for one in contenders.on_hosts(names, each) if options.only.search(one.name)]
        with testbed.Cluster(count, ipv6=False) as cluster:
            for rate in options.rate:
                for control in options.control:
                    prepare(cluster, names, rate, control)
                    setting = Setting(count * each, count, rate, control)
                    failures[setting] = play(playing, setting, measurement(options), options, write, start_in(cluster),
                                             end_all_in(cluster))
            if left := cluster.left():
                print(f"left on the hosts: {left}")


def prepare(cluster, names, rate, control):
    """A locked route, because only the machine's own network may have a restricted algorithm as its default; it holds
    for both ends of a connection, and no program can choose another."""
    for name in names:
        host = cluster[name]
        for route in host.run(["ip", "-4", "route", "show", "dev", "eth0"]).stdout.splitlines():
            words = route.split(" congctl ")[0].split()
            done = host.run(["ip", "route", "change", *words, "dev", "eth0", "congctl", "lock", control])
            if done.returncode:
                sys.exit(f"congestion control {control}: {done.stderr.strip()}")
        host.rate(rate)


def finish(rows, failures, options, path):
    if not rows:
        for setting, some in failures.items():
            report.print_failures(setting, some)
        sys.exit("nothing was measured")
    wrong = report.print_all(rows, failures, options.steal)
    print(f"all rounds: {os.path.relpath(path)}")
    draw(path, pathlib.Path(path).with_suffix(".png"), options.steal)
    if wrong:
        sys.exit("WRONG RESULTS: " + "; ".join(sorted(wrong)))


def draw(path, picture, most_stolen):
    """With the first Python that has matplotlib: Debian's is for its own Python."""
    script = TOP / "bench/benchmarks/plot.py"
    for python in (sys.executable, "/usr/bin/python3"):
        done = subprocess.run([python, script, path, picture, str(most_stolen)], stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode == 0:
            print(f"as a plot: {os.path.relpath(picture)}")
            return
    print(f"no plot: {(done.stderr.strip().splitlines() or ['?'])[-1]} (package python3-matplotlib)")
