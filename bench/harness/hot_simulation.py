"""From measured joins with a hot key to what `simulate.py --skew` writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import product
from statistics import median

from harness.clusters import Assumptions
from harness.costs import check_machines
from harness.hot_clusters import (
    WAYS,
    RowBytes,
    SkewRules,
    replay,
    residual_limit,
    row_bytes,
    simulate,
)
from harness.hot_costs import HotCosts, HotRun, learn, runs_of
from harness.report import Json

#: What is learned from which variants.
VARIANTS = {"stock": ("sortmerge",), "ours": ("split-unmarked", "split")}

ROWS = (100_000_000, 1_000_000_000, 3_000_000_000)
SHARES = (0.01, 0.1, 0.5)
CORES = (8, 16, 32, 64, 128, 256, 512, 1000, 2000, 5000, 10_000)

#: Where the ways are compared, and of which size the plot is.
COMPARED_CORES = 1000
PLOTTED_ROWS = 1_000_000_000


def find(results: Sequence[Json], given: Assumptions) -> Json:
    """Learn from results, and simulate all sizes; a ValueError says what is lacking."""
    runs, left_out = _runs(results)
    used = [r for r in results if r["case"] in {run.case for some in runs.values() for run in some}]
    check_machines(used)
    costs = {family: learn(some) for family, some in runs.items()}
    if costs["ours"].piece_ms is None:
        raise ValueError("no run of ours has split the join")
    all_runs = [run for some in runs.values() for run in some]
    given = replace(
        given,
        stage_ms=median([run.gap for run in all_runs]),
        query_ms=median([run.beside for run in all_runs]),
    )
    size, rules = row_bytes(runs["ours"]), SkewRules()
    return {
        "assumptions": {
            key: value for key, value in asdict(given).items() if key not in ("rows", "hot_share")
        },
        "rules": asdict(rules),
        "row_bytes": asdict(size),
        "left_out": left_out,
        "sources": [
            {
                "case": r["case"],
                "date": r["date"],
                "cpu": r["machine"]["cpu"],
                "cores": r["settings"]["cores"],
                "spark": r["versions"]["spark"],
                "load": max(point["load_before"] for point in r["points"]),
            }
            for r in used
        ],
        "costs": {family: _costs(found) for family, found in costs.items()},
        "repeated": [
            _repeated(run, costs[family], given) for family, some in runs.items() for run in some
        ],
        "joins": [
            _join(rows, share, costs, size, given, rules) for rows in ROWS for share in SHARES
        ],
    }


def _runs(results: Sequence[Json]) -> tuple[dict[str, list[HotRun]], list[str]]:
    found: dict[str, list[HotRun]] = {}
    left_out: list[str] = []
    for family, variants in VARIANTS.items():
        for variant, result in product(variants, results):
            try:
                found.setdefault(family, []).extend(runs_of(result, variant))
            except ValueError as error:
                left_out.append(str(error))
    missing = [family for family in VARIANTS if not found.get(family)]
    if missing:
        raise ValueError("; ".join([f"nothing measured for {' and '.join(missing)}", *left_out]))
    return found, left_out


def _costs(found: HotCosts) -> Json:
    return {
        "scan_fixed_ms": round(found.scan.fixed_ms, 2),
        "scan_row_us": round(found.scan.row_ms * 1000, 4),
        "fixed_ms": round(found.whole.fixed_ms, 2),
        "row_us": round(found.whole.row_ms * 1000, 4),
        "hot_row_us": round(found.hot_ms * 1000, 4),
        "mark_factor": found.mark_factor and round(found.mark_factor, 3),
        "piece_row_us": None if found.piece_ms is None else round(found.piece_ms * 1000, 4),
        "task_rows_measured": [round(rows) for rows in found.whole.range],
        "worst_task": round(found.whole.spread[-1], 2),
    }


def _repeated(run: HotRun, costs: HotCosts, given: Assumptions) -> Json:
    said = replay(run, costs, given)
    return {
        "case": run.case,
        "variant": f"{run.variant}, keys marked" if run.marks else run.variant,
        "rows": run.rows,
        "measured_s": run.seconds,
        "model_s": round(said, 3),
        "model_over_measured": round(said / run.seconds, 3),
    }


def _join(
    rows: int,
    share: float,
    costs: dict[str, HotCosts],
    size: RowBytes,
    given: Assumptions,
    rules: SkewRules,
) -> Json:
    """One size of tables and of the hot key, on all clusters in all ways."""
    of = replace(given, rows=rows, hot_share=share)

    def ways(cores: int) -> Json:
        by_family = {way: costs["stock" if way == "stock" else "ours"] for way in WAYS}
        return {way: simulate(way, by_family[way], size, cores, of, rules) for way in WAYS}

    sweep = [{"cores": cores, **ways(cores)} for cores in CORES]
    compared = next(found for found in sweep if found["cores"] == COMPARED_CORES)
    limits = [residual_limit(found["residual"]) for found in sweep]
    # Partitions, and with them the residual, are smaller on more cores: the first that agrees.
    limit = next(
        (n for n, found in zip(limits, sweep) if n is not None and n <= found["cores"]), None
    )
    return {
        "rows": rows,
        "share": share,
        "hot_bytes": round(rows * share * size.shuffled[0]),
        "residual_decides_from": limit,
        "compared": compared,
        "sweep": sweep,
    }
