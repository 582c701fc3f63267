"""plot.py CSV PNG MOST_STOLEN: what `bench/run allreduce` measured, as bus bandwidth over the size of the tensor."""
import collections
import csv
import statistics
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

ROLES = ("corro", "other build", "peer", "limit")


def styles(names, roles):
    """Corro in thick shades of red, peers in a colour each, limits in grey."""
    reds, greys, colours = iter(("#d00000", "#ff8800", "#800040")), iter(("black", "grey")), iter(plt.cm.tab20.colors * 2)
    found = {}
    for name in sorted(names, key=lambda one: (ROLES.index(roles[one]), one)):
        if roles[name] == "corro":
            found[name] = {"color": next(reds), "linewidth": 2.5, "marker": "o"}
        elif roles[name] in ("peer", "other build"):
            found[name] = {"color": next(colours), "linewidth": 1.2, "marker": "."}
        else:
            found[name] = {"color": next(greys), "linewidth": 1.5, "linestyle": "--"}
    return found


def main(source, picture, most_stolen):
    panels = collections.defaultdict(lambda: collections.defaultdict(lambda: collections.defaultdict(list)))
    roles = {}
    with open(source, newline="") as file:
        for row in csv.DictReader(file):
            if float(row["stolen"]) > float(most_stolen) or row["verdict"] != "ok":
                continue
            where = f"np {row['np']}" + (f", {row['hosts']} hosts, {row['rate']}, {row['control']}" if row["hosts"] else "")
            np, size, micros = int(row["np"]), int(row["bytes"]), float(row["median_us"])
            panels[where][row["contender"]][size].append(2 * (np - 1) / np * size / micros / 1e3)
            roles[row["contender"]] = row["role"]
    figure, axes = plt.subplots(len(panels), 1, figsize=(10, 5.5 * len(panels)), squeeze=False)
    for axis, (where, contenders) in zip(axes[:, 0], panels.items()):
        for name, style in styles(contenders, roles).items():
            points = sorted((size, statistics.quantiles(rates, n=4, method="inclusive") if len(rates) > 1 else rates * 3)
                            for size, rates in contenders[name].items())
            sizes, (low, middle, high) = [size for size, _ in points], zip(*(rates for _, rates in points))
            line, = axis.plot(sizes, middle, label=name, **style)
            axis.fill_between(sizes, low, high, alpha=0.12, color=line.get_color())
        axis.set(title=f"allreduce, f32 sum, {where}: medians and quartiles", xlabel="tensor, bytes",
                 ylabel="bus bandwidth, GB/s", xscale="log", yscale="log")
        axis.grid(True, which="major", alpha=0.3)
        axis.legend(fontsize=8, ncol=2)
    figure.tight_layout()
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    main(*sys.argv[1:])
