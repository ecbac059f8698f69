"""Draw the results as SVG, beside the result files.

    bench/plot.py [DIRECTORY]          bench/results without one

`cases.svg` has a bar for every case: how many times the best stock plan's time is ours. `skew.svg`
has the joins with a hot key: how long the longest task is, and the query. `techniques.svg` has the
techniques of `skew_join` as a heat map. Cases with several points become curves, such as
`scaling-n.svg`. What `simulate.py` found becomes `simulation.svg`.
"""

from __future__ import annotations

import json
import re
import sys
from math import log2
from pathlib import Path
from typing import Any

import matplotlib
from harness.cases import CASES
from harness.hot_page import NAMES
from harness.hot_simulation import PLOTTED_ROWS
from harness.report import Json, best, load
from harness.technique_page import speed_up
from harness.technique_plans import AUTO, FAMILY, TECHNIQUES

RESULTS = Path(__file__).resolve().parent / "results"

matplotlib.use("svg")
# The same figures give the same file.
matplotlib.rcParams["svg.hashsalt"] = "skewext"
matplotlib.rcParams["font.size"] = 9

#: Colour, style and legend of a curve; told apart without colours too.
STYLES = {
    "sortmerge": ("#d55e00", "-", "s", "stock: sort-merge joins"),
    "shufflehash": ("#e69f00", "-", "^", "stock: shuffled hash joins"),
    "ours": ("#0072b2", "-", "o", "multi_full_join"),
    "split": ("#0072b2", "-", "o", "the same query, with the extension"),
    "split-unmarked": ("#56b4e9", "--", "d", "the same, keys not marked before the join"),
    "floor": ("#555555", ":", ".", "only scanning and shuffling"),
}
OURS, GOAL = "#0072b2", "#222222"


def main(arguments: list[str]) -> int:
    """Draw all there is to draw."""
    directory = Path(arguments[0]) if arguments else RESULTS
    found = {result["case"]: result for result in load(directory)}
    ordered = [found[case.name] for case in CASES if case.name in found]
    drawn = [_draw_curve(r, directory) for r in ordered if r["axis"] is not None]
    compared = [r for r in ordered if r["axis"] is None and _ratio(r) is not None]
    bars = [r for r in compared if not r["case"].startswith("skew-")]
    if bars:
        drawn.append(_draw_bars(bars, directory))
    skewed = [r for r in compared if r["case"].startswith("skew-")]
    if skewed:
        drawn.append(_draw_skew(skewed, directory))
    techniques = [r for r in ordered if r["case"].startswith("technique-")]
    if techniques:
        drawn.append(_draw_techniques(techniques, directory))
    if (directory / "simulation.json").exists():
        drawn.append(draw_simulation(directory))
    if (directory / "skew-simulation.json").exists():
        drawn.append(draw_skew_simulation(directory))
    for path in drawn:
        print(path.name)
    return 0 if drawn else 1


def _ratio(result: Json) -> float | None:
    stock, ours = (best(result["points"][0], of) for of in ("stock", "ours"))
    return stock[1] / ours[1] if stock and ours else None


def _goal(result: Json) -> float | None:
    for goal in result["goals"]:
        match = re.fullmatch(r"stock / ours >= ([0-9.]+)", goal["goal"])
        if match:
            return float(match.group(1))
    return None


def _figure(width: float, height: float) -> tuple[Any, Any]:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(width, height), layout="constrained")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def _save(figure: Any, path: Path) -> Path:
    from matplotlib import pyplot

    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    # matplotlib leaves blanks at the ends of lines, which git complains of.
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(line.rstrip() for line in lines) + "\n", encoding="utf-8")
    return path


def _draw_bars(results: list[Json], directory: Path) -> Path:
    figure, axes = _figure(7.0, 1.2 + 0.3 * len(results))
    for position, result in enumerate(results):
        ratio, goal = _ratio(result) or 0.0, _goal(result)
        stock = best(result["points"][0], "stock")
        axes.barh(position, ratio, height=0.65, color=OURS)
        axes.text(0, position, f" {stock[0] if stock else ''}", color="white", va="center")
        axes.text(ratio, position, f" {ratio:.1f}", va="center")
        if goal is not None:
            axes.plot([goal, goal], [position - 0.42, position + 0.42], color=GOAL, linewidth=2)
    axes.axvline(1.0, color=GOAL, linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(results)), [result["case"] for result in results])
    axes.invert_yaxis()
    axes.margins(x=0.1)
    axes.set_xlabel(
        "time of the best stock plan (named) / time of multi_full_join; the mark is the goal"
    )
    return _save(figure, directory / "cases.svg")


def _draw_skew(results: list[Json], directory: Path) -> Path:
    """Two panels with a pair of bars for every case: what Spark plans by itself, and ours."""
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(
        1, 2, sharey=True, figsize=(8.0, 1.4 + 0.36 * len(results)), layout="constrained"
    )
    for side, family in enumerate(("sortmerge", "ours")):
        colour, _, _, label = STYLES["split" if side else family]
        for position, result in enumerate(results):
            point = result["points"][0]
            found = best(point, family)
            if found is None:
                continue
            balance = point["variants"][found[0]].get("balance", {})
            for axes, value in zip(panels, (balance.get("ratio"), found[1])):
                if value is None:
                    continue
                at = position + (side - 0.5) * 0.38
                named = label if position == 0 and axes is panels[0] else None
                axes.barh(at, value, height=0.36, color=colour, label=named)
                axes.text(value, at, f" {value:.1f}", va="center", fontsize=7)
    for axes in panels:
        axes.margins(x=0.12)
        for side_ in ("top", "right"):
            axes.spines[side_].set_visible(False)
    panels[0].axvline(2.0, color=GOAL, linewidth=0.8, linestyle=":")
    panels[0].set_yticks(range(len(results)), [r["case"].split("-", 1)[1] for r in results])
    panels[0].invert_yaxis()
    panels[0].set_xlabel("longest task / median task of the join; the line is the goal")
    panels[1].set_xlabel("seconds of the query")
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    return _save(figure, directory / "skew.svg")


#: From twice as slow as stock Spark to four times as fast: colours by powers of two.
SLOWEST, FASTEST = -1.0, 2.0


def _draw_techniques(results: list[Json], directory: Path) -> Path:
    """A panel for each kind of data, a row for each kind of join, a column for each technique."""
    from matplotlib import colors, patches, pyplot

    height = 1.3 + 0.28 * max(len(result["points"]) for result in results)
    figure, panels = pyplot.subplots(
        1, len(results), sharey=True, squeeze=False, figsize=(3.4 * len(results), height)
    )
    figure.set_layout_engine("constrained")
    norm = colors.TwoSlopeNorm(0.0, SLOWEST, FASTEST)
    shades = matplotlib.colormaps["RdBu"]
    for axes, result in zip(panels[0], results):
        for down, point in enumerate(result["points"]):
            fastest = best(point, FAMILY)
            for across, name in enumerate(TECHNIQUES):
                ratio = speed_up(point, name)
                place = 0.5 if ratio is None else float(norm(_power(ratio)))
                colour = "#eeeeee" if ratio is None else shades(place)
                is_best = fastest is not None and fastest[0] == name
                box = patches.Rectangle((across, down), 1, 1, facecolor=colour, edgecolor="white")
                axes.add_patch(box)
                axes.text(
                    across + 0.5,
                    down + 0.5,
                    _without_ratio(point, name) if ratio is None else f"{ratio:.2f}",
                    ha="center",
                    va="center",
                    fontsize=7,
                    fontweight="bold" if is_best else "normal",
                    # The two ends of the scale are dark.
                    color="white" if abs(place - 0.5) > 0.3 else "black",
                )
        columns = range(len(TECHNIQUES))
        axes.set_xlim(0, len(TECHNIQUES))
        axes.set_ylim(len(result["points"]), 0)
        axes.set_xticks([at + 0.5 for at in columns], TECHNIQUES, rotation=45, ha="right")
        labels = [point["label"] for point in result["points"]]
        axes.set_yticks([at + 0.5 for at in range(len(labels))], labels)
        axes.tick_params(length=0)
        axes.get_xticklabels()[TECHNIQUES.index(AUTO)].set_fontweight("bold")
        axes.set_title(result["case"].split("-", 1)[1], fontsize=9)
        for side in axes.spines.values():
            side.set_visible(False)
    figure.suptitle("time of stock Spark / time of skew_join by the technique", fontsize=9)
    return _save(figure, directory / "techniques.svg")


def _power(ratio: float) -> float:
    return max(SLOWEST, min(FASTEST, log2(ratio)))


def _without_ratio(point: Json, name: str) -> str:
    facts = point["variants"].get(name)
    if facts is None:
        return "="
    return "refuses" if facts.get("refused") else "fails"


def _draw_curve(result: Json, directory: Path) -> Path:
    by_tables = result["axis"] == "tables"
    figure, axes = _figure(6.0, 3.8)
    for name, (colour, line, marker, label) in STYLES.items():
        points = [
            (point["tables"] if by_tables else point["rows"] / 1e6, point["variants"][name]["min"])
            for point in result["points"]
            if point["variants"].get(name, {}).get("min") is not None
        ]
        if points:
            xs, ys = zip(*points)
            axes.plot(xs, ys, color=colour, linestyle=line, marker=marker, label=label)
    first = result["points"][0]
    if by_tables:
        axes.set_xlabel(f"tables, each of {first['rows']:,} rows")
        axes.set_xticks([point["tables"] for point in result["points"]])
    elif result["case"].startswith("skew-"):
        axes.set_xlabel(
            "million rows, half of them with one key; a quarter as many on the other side"
        )
    else:
        axes.set_xlabel(f"million rows in each of {first['tables']} tables")
    axes.set_ylabel("seconds")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    return _save(figure, directory / f"{result['case']}.svg")


def draw_simulation(directory: Path) -> Path:
    """Time against cores, both by powers; one cluster's time would be a line without its limits."""
    found = json.loads((directory / "simulation.json").read_text(encoding="utf-8"))
    figure, axes = _figure(6.0, 3.8)
    for family, label in (("stock", "best stock plan"), ("ours", "multi_full_join")):
        colour, line, marker, _ = STYLES["sortmerge" if family == "stock" else "ours"]
        points = [(c["cores"], c[family]["seconds"]) for c in found["sweep"]]
        xs, ys = zip(*points)
        axes.plot(xs, ys, color=colour, linestyle=line, marker=marker, label=label)
    _by_powers(axes, [cluster["cores"] for cluster in found["sweep"]])
    given = found["assumptions"]
    axes.set_xlabel(f"cores; simulated, {found['tables']} tables of {given['rows']:,} rows")
    axes.set_ylabel("time")
    axes.legend(frameon=False)
    return _save(figure, directory / "simulation.svg")


def _by_powers(axes: Any, cores: list[int]) -> None:
    """Both axes by powers: time as people say it, and numbers of cores."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    marks = [(1, "1 s"), (10, "10 s"), (60, "1 min"), (600, "10 min"), (3600, "1 h")]
    marks += [(6 * 3600, "6 h"), (24 * 3600, "1 day")]
    low, high = axes.get_ylim()
    shown = [(at, text) for at, text in marks if low <= at <= high]
    axes.set_yticks([at for at, _ in shown], [text for _, text in shown])
    axes.minorticks_off()
    axes.set_xticks(cores, [f"{count:,}" for count in cores], rotation=45)


#: Of the ways to join with a hot key.
WAYS = {
    "stock": STYLES["sortmerge"][:3],
    "residual": ("#56b4e9", "--", "d"),
    "marking": STYLES["ours"][:3],
    "even": STYLES["floor"][:3],
}


def draw_skew_simulation(directory: Path) -> Path:
    """A panel for every share of the hot key: time against cores, in each way to join."""
    from matplotlib import pyplot

    found = json.loads((directory / "skew-simulation.json").read_text(encoding="utf-8"))
    joins = [join for join in found["joins"] if join["rows"] == PLOTTED_ROWS]
    figure, panels = pyplot.subplots(
        1, len(joins), sharey=True, figsize=(3.0 * len(joins), 3.8), layout="constrained"
    )
    for axes, join in zip(panels, joins):
        cores = [each["cores"] for each in join["sweep"]]
        for way, (colour, line, marker) in WAYS.items():
            seconds = [each[way]["seconds"] for each in join["sweep"]]
            label = NAMES[way] if axes is panels[0] else None
            axes.plot(
                cores, seconds, color=colour, linestyle=line, marker=marker, ms=4, label=label
            )
        axes.set_title(f"{join['share']:.0%} of the rows have one key", fontsize=9)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    for axes in panels:
        _by_powers(axes, cores)
    panels[0].set_ylabel("time")
    panels[len(panels) // 2].set_xlabel(f"cores; simulated, {PLOTTED_ROWS:,} rows and a quarter")
    figure.legend(loc="outside upper center", ncols=4, frameon=False)
    return _save(figure, directory / "skew-simulation.svg")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
