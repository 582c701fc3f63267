"""The tables of `bench/run allreduce`, from its rows.

A ratio is how many times as fast Corro is: the other's time by Corro's, within a round; above 1 Corro is faster.
Corro is *ahead* of a peer if the lower quartile of the ratio is above 1.
"""
import collections
import math
import typing

from .common import quartiles
from .rounds import Setting

# Corro's contender, the table whose peers it meets, the limit that it is held against.
COMPARISONS = (("corro", "cross-memory attach allowed", "staged"),
               ("corro no-cma", "cross-memory attach denied", "staged"),
               ("corro alloc", "tensors from corro_alloc", "direct"))


QUIET = 0.05  # share of all cores
ROLES = ("corro", "other build", "peer", "limit")


class Ratio(typing.NamedTuple):
    name: str
    lower: float
    median: float
    upper: float
    pairs: int = 0  # rounds in which neither was discarded

    @property
    def ahead(self):
        return self.lower > 1

    def __str__(self):
        if self.median != self.median:
            return "–"
        return f"{number_text(self.median)} ({number_text(self.lower)} to {number_text(self.upper)})"


class Cells:
    """The medians of one setting, by contender, size and round; what had time stolen is left out."""

    def __init__(self, setting, rows, most_stolen):
        self.setting = setting
        self.sizes = sorted({int(row["bytes"]) for row in rows})
        self.roles, self.times = {}, collections.defaultdict(dict)
        self.memory = collections.defaultdict(int)
        self.discarded = self.all = 0
        for row in rows:
            self.all += 1
            self.roles[row["contender"]] = row["role"]
            self.memory[row["contender"]] = max(self.memory[row["contender"]], int(row["memory_kib"] or 0))
            if float(row["stolen"]) > most_stolen:
                self.discarded += 1
            elif row["verdict"] == "ok":
                self.times[row["contender"], int(row["bytes"])][int(row["round"])] = float(row["median_us"])
        self.rounds = len({row["round"] for row in rows})
        self.distances = quartiles([float(row["core_distance_ns"]) for row in rows])
        self.busy = max(float(row["busy"]) for row in rows)

    def contenders(self, role):
        return sorted(name for name, own in self.roles.items() if own == role)

    def peers_of(self, corro):
        """Those that may use cross-memory attach against those that may, and the others against the others."""
        def denied(name):
            return "no-cma" in name
        return [name for name in self.contenders("peer") if name.startswith("gloo") or denied(name) == denied(corro)]

    def quartiles(self, name, size):
        return quartiles(list(self.times[name, size].values()))

    def limit_us(self, size):
        """What the link allows: every host sends 2(n-1)/n of the tensor, however many ranks it has."""
        hosts = self.setting.hosts
        return 2 * (hosts - 1) / hosts * size * 8 / bits(self.setting.rate) * 1e6

    def ratio(self, corro, other, size):
        own, others = self.times[corro, size], self.times[other, size]
        values = [others[number] / own[number] for number in own if number in others]
        return Ratio(other, *quartiles(values), len(values))

    def to_peers(self, corro, size):
        """Slowest for us first: the best peer is the one to which Corro's ratio is lowest."""
        found = [self.ratio(corro, peer, size) for peer in self.peers_of(corro)]
        return sorted((one for one in found if one.median == one.median), key=lambda one: one.median)

    def to_limit(self, corro, limit, size):
        if self.setting.hosts:
            return Ratio("limit", *quartiles([self.limit_us(size) / own for own in self.times[corro, size].values()]))
        return self.ratio(corro, limit, size)

    def bus_gb(self, size, micros):
        """Bytes that a rank has to send at least, by the time: comparable between numbers of ranks."""
        return 2 * (self.setting.np - 1) / self.setting.np * size / micros / 1e3


def bits(rate):
    number = rate.rstrip("abcdefghijklmnopqrstuvwxyz")
    return float(number) * {"gbit": 1e9, "mbit": 1e6, "kbit": 1e3}[rate[len(number):]]


def size_text(size):
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size} B"


def number_text(value):
    if value != value:
        return "–"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def settings_of(rows):
    def setting(row):
        return Setting(int(row["np"]), int(row["hosts"] or 0), row["rate"], row["control"])
    grouped = collections.defaultdict(list)
    for row in rows:
        grouped[setting(row)].append(row)
    return grouped


def print_all(rows, failures, most_stolen):
    """Prints everything; returns who had wrong results, as a set of sentences."""
    for setting, own in settings_of(rows).items():
        cells = Cells(setting, own, most_stolen)
        low, middle, high = cells.distances
        print(f"\n=== {setting}: {cells.rounds} rounds; {cells.discarded} of {cells.all} figures discarded for stolen time; "
              f"a cache line from core to core and back {middle:.0f} ns ({low:.0f} to {high:.0f})")
        if cells.busy > QUIET:
            print(f"      THE MACHINE WAS NOT QUIET: other processes used up to {cells.busy:.0%} of it between rounds")
        print_failures(setting, failures.get(setting, {}))
        print_matrix(cells, "median, µs", lambda name, size: number_text(cells.quartiles(name, size)[1]))
        print_matrix(cells, "quartiles, µs", lambda name, size: "..".join(
            number_text(cells.quartiles(name, size)[which]) for which in (0, 2)))
        print_matrix(cells, "bus bandwidth, GB/s",
                     lambda name, size: number_text(cells.bus_gb(size, cells.quartiles(name, size)[1])))
        for corro, title, limit in COMPARISONS:
            if corro in cells.roles:
                print_comparison(cells, corro, title, limit)
        for other in cells.contenders("other build"):
            print(f"  corro; times as fast as {other}")
            for size in cells.sizes:
                print(f"  {size_text(size):>8}  {cells.ratio('corro', other, size)}")
            print()
    return {f"{row['contender']} at np {row['np']}, {size_text(int(row['bytes']))}" for row in rows
            if row["verdict"] == "WRONG"}


def print_failures(setting, failures):
    for name, said in failures.items():
        print(f"      {setting}: {name} failed {len(said)} times: {said[-1]}")


def print_matrix(cells, title, text):
    sizes = cells.sizes
    contenders = [name for role in ROLES for name in cells.contenders(role)]
    columns = [[size_text(size), *(text(name, size) for name in contenders)] for size in sizes]
    if cells.setting.hosts and title.startswith("median"):
        for column, size in zip(columns, sizes):
            column.append(number_text(cells.limit_us(size)))
    names = [title, *contenders, "limit of the link"]
    widths = [max(map(len, column)) + 2 for column in columns]
    for number, name in enumerate(names[:len(columns[0])]):
        print(f"  {name:<22}" + "".join(f"{column[number]:>{width}}" for column, width in zip(columns, widths)))
    print()


def print_comparison(cells, corro, title, limit):
    limit_title = "the link's limit" if cells.setting.hosts else limit
    print(f"  {corro}{'' if cells.setting.hosts else ': ' + title}; times as fast as the best peer, and as {limit_title}")
    best, limits = {}, {}
    for size in cells.sizes:
        peers, limits[size] = cells.to_peers(corro, size), cells.to_limit(corro, limit, size)
        if peers:
            best[size] = peers[0]
            behind = [peer.name for peer in peers if not peer.ahead]
            verdict = f"not ahead of {', '.join(behind)}" if behind else "ahead"
            if (pairs := min(peer.pairs for peer in peers)) < cells.rounds:
                verdict += f" ({pairs} pairs)"
            line = f"{peers[0].name:<22} {peers[0]!s:<27}{limits[size]!s:<27}{verdict}"
        else:
            line = f"{'no peer':<22} {'':<27}{limits[size]!s}"
        print(f"  {size_text(size):>8}  {line}")
    if best:
        mean = math.exp(sum(math.log(one.median) for one in best.values()) / len(best))
        print(f"  geometric mean over sizes: {mean:.2f} times as fast as the best peer")
        print_goals(cells, corro, best, limits, mean)
    print()


# What Corro is to reach.

def goal(text, kept):
    print(f"      {'kept  ' if kept else 'MISSED'}  {text}")


def print_goals(cells, corro, best, limits, mean):
    if cells.setting.hosts:
        goals_between_hosts(cells, best, limits)
    elif cells.setting.np == 2:
        goals_for_two(cells, corro, best, limits)
    elif least := {4: 1.2, 8: 1.3}.get(cells.setting.np):
        if corro != "corro alloc":
            goal(f"geometric mean {mean:.2f}, at least {least}", mean >= least)
            below = [size_text(size) + (" (staged too)" if cells.ratio("staged", one.name, size).median < 0.9 else "")
                     for size, one in best.items() if one.median < 0.9]
            goal("no size below 0.9" + (f": {', '.join(below)}" if below else ""), all("staged" in one for one in below))
    if corro == "corro" and cells.memory[corro]:
        used = cells.memory[corro] / 1024
        goal(f"memory of a rank beyond its tensor {used:.1f} MiB, at most 64", used <= 64)


def goals_for_two(cells, corro, best, limits):
    large = [size for size in best if size >= 64 << 20]
    if corro == "corro alloc":
        for size in (size for size in large if size == 64 << 20):
            goal(f"{size_text(size)}: {best[size].median:.2f} times the best peer, at least 3", best[size].median >= 3)
            goal(f"{size_text(size)}: {limits[size].median:.2f} of direct, at least {1 / 1.15:.2f}",
                 limits[size].median >= 1 / 1.15)
        return
    behind = [size_text(size) for size in best if not all(one.ahead for one in cells.to_peers(corro, size))]
    goal("ahead of every peer at every size" + (f", but not at {', '.join(behind)}" if behind else ""), not behind)
    judged = [size for size in limits if size >= 256 << 10]
    far = [size_text(size) for size in judged if not limits[size].median >= 1 / 1.15]
    if judged:
        goal("within 15 % of staged from 256 KB up" + (f", but not at {', '.join(far)}" if far else ""), not far)
    for size in large:
        goal(f"{size_text(size)}: {best[size].median:.2f} times the best peer, at least 1.5", best[size].median >= 1.5)
    flat = [one.median for size, one in limits.items() if size >= 1 << 20 and one.median == one.median]
    if len(flat) > 1:
        goal(f"the ratio to staged stays within {max(flat) / min(flat):.2f} from 1 MB up, at most 1.2",
             max(flat) / min(flat) <= 1.2)


def goals_between_hosts(cells, best, limits):
    for size in (size for size in best if size >= 4 << 20):
        name, one, limit = size_text(size), best[size], limits[size]
        if bits(cells.setting.rate) <= 1e9:
            goal(f"{name}: {one.median:.3f} times the best peer, at least 0.98", one.median >= 0.98)
            goal(f"{name}: {1 / limit.median:.3f} times the link's limit, at most 1.06", 1 / limit.median <= 1.06)
            continue
        peer = cells.quartiles(one.name, size)[1] / cells.limit_us(size)
        least = "0.97, the peer being near the limit" if peer <= 1.1 else "ahead"
        goal(f"{name}: {one} times the best peer ({peer:.2f} times the limit), at least: {least}",
             one.median >= 0.97 if peer <= 1.1 else all(peer.ahead for peer in cells.to_peers("corro", size)))
