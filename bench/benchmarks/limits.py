"""What this machine allows: copy, sum, and hand-written reductions between processes."""
import argparse
import subprocess

from . import contenders
from .allreduce import list_of, size
from .common import BIN, build, quartiles
from .report import number_text, size_text
from .rounds import Clock, Failed, run_once, settle_cores, start_here

HEADER = ("what", "ranks", "bytes", "round", "microseconds", "gigabytes_per_second", "core_distance_ns", "stolen")


def memory(sizes, repeats):
    """[(kernel, cores, bytes, GB/s)]"""
    done = subprocess.run([BIN / "memory_limits", f"sizes={','.join(map(str, sizes))}", f"repeats={repeats}"],
                          stdout=subprocess.PIPE, text=True, check=True)
    rows = [line.split(",") for line in done.stdout.splitlines()]
    return [(kernel, int(cores), int(count), float(rate)) for kernel, cores, count, rate, _, _ in rows]


def reductions(np):
    ours = [contenders.simple(f"{mode}, np {np}", "limit", (),
                              [BIN / "allreduce_reference", f"np={np}", f"mode={mode}"]) for mode in ("staged", "direct", "cma")]
    theirs = [one for one in contenders.references(np) if contenders.has("ref_shm")]
    return [*ours, *(contenders.dataclasses.replace(one, name=f"ref_shm {one.name}, np {np}") for one in theirs)]


def run(arguments):
    parser = argparse.ArgumentParser(prog="bench/run limits", description=__doc__)
    parser.add_argument("--np", type=list_of(int), default=[2], help="ranks of the reductions (default: 2)")
    parser.add_argument("--sizes", type=list_of(size),
                        default=list_of(size)("4,1K,16K,256K,4M,64M,256M"), help="default: 4,1K,16K,256K,4M,64M,256M")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="whether it works at all: one short round")
    options = parser.parse_args(arguments)
    if options.quick:
        options.rounds = 1
    build("bench_allreduce")
    measurement = contenders.Measurement(tuple(options.sizes), 3, 0.002 if options.quick else 0.03)
    rows, distances = [], []
    for number in range(options.rounds):
        distances.append(settle_cores(0.02 if options.quick else 1))
        clock = Clock()
        large = [one for one in options.sizes if one >= 4096] or [4096]
        for kernel, cores, count, rate in memory(large, 1 if options.quick else 5):
            rows.append((kernel, cores, count, number, count * cores / rate / 1e3, rate, distances[-1], ""))
        rows += [("memory, all", "", "", number, "", "", distances[-1], f"{clock.stolen():.5f}")]
        for np in options.np:
            for one in reductions(np):
                try:
                    cells = run_once(one, measurement, 300, start_here)
                except Failed as failed:
                    print(f"{one.name}: {failed}")
                    continue
                for cell in cells:
                    micros, count = float(cell["median_us"]), int(cell["bytes"])
                    rows.append((one.name, np, count, number, micros, 2 * (np - 1) / np * count / micros / 1e3,
                                 distances[-1], cell["stolen"]))
                    if cell["verdict"] != "ok":
                        print(f"{one.name}, {size_text(count)}: WRONG RESULT")
    show_tables(rows, options.sizes)
    low, middle, high = quartiles([float(one) for one in distances])
    print(f"a cache line from core to core and back: {middle:.0f} ns ({low:.0f} to {high:.0f})")
    return HEADER, rows


def show_tables(rows, sizes):
    kernels = [row for row in rows if row[0] in ("copy", "sum", "exchange")]
    print_table("memory, GB/s of tensor", kernels, 5, [one for one in sizes if one >= 4096] or [4096],
                lambda row: f"{row[0]}, {row[1]} cores" if row[1] > 1 else f"{row[0]}, 1 core")
    others = [row for row in rows if row[1] and row not in kernels]
    print_table("allreduce, µs", others, 4, sizes, lambda row: row[0])
    print_table("allreduce, bus GB/s", others, 5, sizes, lambda row: row[0])


def print_table(title, rows, column, sizes, name_of):
    print(f"{title:<24}" + "".join(f"{size_text(one):>10}" for one in sizes))
    for name in dict.fromkeys(map(name_of, rows)):
        cells = [quartiles([row[column] for row in rows if name_of(row) == name and row[2] == one])[1] for one in sizes]
        print(f"{name:<24}" + "".join(f"{number_text(cell):>10}" for cell in cells))
    print()
