"""bench/run allreduce and limits run, check their results and leave what they promise; no figure is judged here."""
import csv
import shutil
import subprocess
import sys
import warnings

import pytest
import corro_system as k

# A Corro contender, a limit, and a variant of each peer with the command that shows that it is installed.
PEERS = {"openmpi": "mpicxx.openmpi", "mpich": "mpicxx.mpich"}
ONLY = "^(corro|staged|direct|openmpi|mpich|gloo ring)$"
BENCH = k.TOP / "build/bench"
sys.path.insert(0, str(k.TOP / "bench"))
from benchmarks import report, rounds  # noqa: E402


@pytest.fixture(scope="module")
def installed():
    found = [peer for peer, program in PEERS.items() if shutil.which(program)]
    if shutil.which("ldconfig") and "libgloo.so" in subprocess.run(["ldconfig", "-p"], stdout=subprocess.PIPE, text=True,
                                                                  check=True).stdout:
        found.append("gloo ring")
    absent = [*PEERS.keys() - set(found), *(["gloo ring"] if "gloo ring" not in found else [])]
    if absent:
        warnings.warn(f"bench/run WAS NOT TESTED WITH {', '.join(absent)}: not installed (group bench of packaging/packages)")
    if not found:
        pytest.skip("no peer is installed")
    return found


def bench(*arguments):
    return subprocess.run([k.TOP / "bench/run", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60, check=False)


def rows_of(name):
    with open(BENCH / name, newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.skipif(k.SLOW > 1, reason="bench/run measures the release build, whatever else is being tested")
def test_every_contender_that_is_installed_reduces_to_the_right_sum(mark, installed):
    ended = bench("allreduce", "--quick", "--np", "2", "--sizes", "1K", "--only", ONLY)
    assert ended.returncode == 0, ended.stdout
    rows = rows_of("allreduce-quick.csv")
    assert {row["contender"] for row in rows} == {"corro", "staged", "direct", *installed}, ended.stdout
    assert all(row["verdict"] == "ok" and float(row["median_us"]) > 0 for row in rows), rows
    assert "times as fast as the best peer" in ended.stdout
    assert "as a plot:" in ended.stdout or "no plot:" in ended.stdout


@pytest.mark.skipif(k.SLOW > 1, reason="bench/run measures the release build, whatever else is being tested")
def test_the_limits_of_this_machine_are_measured(mark):
    ended = bench("limits", "--quick", "--sizes", "1K,64K")
    assert ended.returncode == 0, ended.stdout
    assert "WRONG" not in ended.stdout
    assert {"copy", "sum", "exchange", "staged, np 2", "direct, np 2"} <= {row["what"] for row in rows_of("limits-quick.csv")}


def figure(number, contender, role, micros, **others):
    return {"round": str(number), "contender": contender, "role": role, "bytes": "4096", "median_us": str(micros),
            "verdict": "ok", "memory_kib": "", "core_distance_ns": "100", "stolen": "0", "busy": "0", **others}


def test_ratios_are_taken_within_a_round_and_stolen_time_is_left_out():
    rows = [figure(number, "corro", "corro", 10 * slow) for number, slow in enumerate((1, 5, 2, 3))]
    rows += [figure(number, "mpich", "peer", 20 * slow) for number, slow in enumerate((1, 5, 2, 3))]
    rows += [figure(number, "openmpi", "peer", 9 if number % 2 else 11) for number in range(4)]
    rows += [figure(4, "corro", "corro", 1000, stolen="0.02"), figure(4, "mpich", "peer", 1)]
    cells = report.Cells(rounds.Setting(2), rows, most_stolen=0.005)
    assert (cells.discarded, cells.all) == (1, 14)
    assert cells.ratio("corro", "mpich", 4096)[1:] == (2, 2, 2, 4)
    assert [(one.name, one.ahead) for one in cells.to_peers("corro", 4096)] == [("openmpi", False), ("mpich", True)]


def test_those_without_cross_memory_attach_meet_each_other():
    names = ("corro", "corro no-cma", "openmpi", "openmpi no-cma", "gloo ring")
    rows = [figure(0, name, "corro" if name.startswith("corro") else "peer", 1) for name in names]
    cells = report.Cells(rounds.Setting(2), rows, most_stolen=0.005)
    assert cells.peers_of("corro") == ["gloo ring", "openmpi"]
    assert cells.peers_of("corro no-cma") == ["gloo ring", "openmpi no-cma"]


def test_the_limit_between_hosts_is_that_of_hosts_not_of_ranks():
    rows = [figure(0, "corro", "corro", 1)]
    for np in (2, 4):
        assert report.Cells(rounds.Setting(np, 2, "1gbit", "cubic"), rows, 0).limit_us(125_000_000) == pytest.approx(1e6)
