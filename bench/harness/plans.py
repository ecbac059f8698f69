"""The plan that each variant must have: a figure of another plan would be a wrong figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Callable, Union

from harness.case import Point
from harness.other import OtherEngine
from harness.variants import RUNTIME_FILTER, TECHNIQUE, Variant

#: Counts of operators, exact or within a range.
Expected = dict[str, Union[int, range]]

_ANY, _SOME = range(100), range(1, 100)

#: The join of each chain; chains of sort-merge joins sort what they shuffle.
_CHAINS = {
    "sortmerge": "SortMergeJoin",
    "bushy-sortmerge": "SortMergeJoin",
    "split": "BuildProbeJoin",
    "shufflehash": "ShuffledHashJoin",
    "bushy-shufflehash": "ShuffledHashJoin",
    "comet-sortmerge": "CometSortMergeJoin",
    "comet-shufflehash": "CometHashJoin",
}

#: The plans of variants over tables of versions, as functions of the number of tables.
_VERSIONS: dict[str, Callable[[int], Expected]] = {
    "asof": lambda n: {"AsOfJoin": 1, "Exchange": n, "Sort": 0},
    "asof-pairs": lambda n: {"SortMergeJoin": 2 * (n - 1), "Window": n - 1},
    "asof-union": lambda _: {"Union": 1, "Window": 1, "Exchange": 1, "Sort": 1},
    "asof-tempo": lambda n: {"Union": n - 1, "Window": n - 1, "Exchange": n - 1, "Sort": n - 1},
    "asof-feast": lambda n: {"SortMergeJoin": _SOME, "Window": n - 1},
    "merge-asof": lambda _: {"SortMergeJoin": 1, "CartesianProduct": 1},
    "merge-asof-ours": lambda _: {"AsOfJoin": 1, "Exchange": 2, "Sort": 0},
    "latest": lambda _: {"LatestRows": _SOME, "Exchange": 1, "Sort": 0},
    "latest-window": lambda _: {"Window": 1, "Exchange": 1},
    "latest-max-by": lambda _: {"Window": 0, "Exchange": 1},
}

_TECHNIQUES: dict[str, Expected] = {
    "broadcast": {"BroadcastHashJoin": 1, "BroadcastExchange": 1, "Exchange": 0},
    "broadcast_map": {
        "BroadcastHashJoin": _ANY,
        "MarkedBroadcastJoin": _ANY,
        "BroadcastExchange": _SOME,
    },
    # The matched keys are shuffled where Spark does not broadcast them.
    "iterative_broadcast": {
        "BroadcastHashJoin": _SOME,
        "BroadcastExchange": _SOME,
        "SortMergeJoin": _ANY,
    },
    "salted": {"SaltKeys": 2, "SortMergeJoin": _ANY, "BroadcastHashJoin": 0},
}


def expected_plan(variant: Variant, point: Point, chosen: str | None = None) -> Expected | None:
    """Operators that a run must have; None where variants are compared with each other instead.

    `chosen` is the technique that `auto` has chosen. A join that is not named must not be there.
    A join that we have split counts as "OursSplit" only.
    """
    if point.query is not None:
        return None
    n = point.tables
    if isinstance(variant.build, OtherEngine):
        return {}
    if variant.name in _VERSIONS:
        return _VERSIONS[variant.name](n)
    # A bloom filter has a shuffle of its own.
    filters = int(point.few and variant.conf.get(RUNTIME_FILTER) != "false")
    if variant.family == TECHNIQUE:
        return _technique_plan(chosen or variant.name, point)
    if variant.build is None:
        return {
            "Exchange": n if variant.name == "floor" else 0,
            "Sort": 0,
            **_lookup(variant, point),
        }
    if variant.name == "union":
        plan: Expected = {"Union": 1, "SortAggregate": 2, "Exchange": 1, "Sort": 2}
    elif variant.name in _CHAINS:
        plan = _chain_plan(variant, point, filters)
    else:
        by_column = 0 if variant.name in ("ours-plain", "comet-ours") else n
        plan = {"MultiFullJoin": 1, "Exchange": n + filters, "Sort": 0}
        plan["ColumnExchange"] = by_column
        if point.bucketed:
            plan.update(Exchange=0, ColumnExchange=0)
    if variant.session == "comet":
        plan["NativeExchange"] = plan["Exchange"]
    if point.skewed:
        return _split_plan(variant, point, plan)
    return {**plan, **_lookup(variant, point)}


def _chain_plan(variant: Variant, point: Point, filters: int) -> Expected:
    """All joins are on one key: its partitioning survives any of them but a full join."""
    again = point.tables - 2 if point.how == "full" else 0
    exchanges = again + filters + (0 if point.bucketed else point.tables)
    join = _CHAINS[variant.name]
    if "Sort" not in join:
        return {join: point.tables - 1, "Exchange": exchanges, "Sort": 0}
    # Of several files for each bucket, Spark sorts the rows.
    sorted_by_spark = point.kind == "bucketed"
    sorts = again + (0 if sorted_by_spark else point.tables)
    return {join: point.tables - 1, "Exchange": exchanges, "Sort": sorts}


def _split_plan(variant: Variant, point: Point, plan: Expected) -> Expected | None:
    """The plan, and who splits its joins."""
    if variant.family == "ours":
        if point.split is None:
            return None
        if point.split != "nobody":
            # One join of all inputs, which reads the shuffles that were there.
            return {
                "Exchange": 0 if point.bucketed else point.tables,
                "OursSplit": 1,
                "SparkSplit": 0,
            }
    return {**plan, "OursSplit": 0, "SparkSplit": int(point.split == "spark")}


def _technique_plan(technique: str, point: Point) -> Expected:
    # "both" has no key with more rows than a partition: there are no keys to salt.
    if technique == "adaptive" or (technique == "salted" and point.kind == "both"):
        if point.split != "nobody":
            return {"Exchange": 2, "OursSplit": 1, "SparkSplit": 0}
        return {"BuildProbeJoin": 1, "Exchange": 2, "OursSplit": 0, "SparkSplit": 0}
    return _TECHNIQUES[technique]


def _sees_key(variant: Variant) -> bool:
    """Whether its scans see a filter above: it passes a group-by, but no full join."""
    return variant.family in ("ours", "bound") or variant.name == "union"


def _lookup(variant: Variant, point: Point) -> Expected:
    if not point.lookup:
        return {}
    return {"ScanByKey": point.tables if _sees_key(variant) else 0}


def rows_scanned(variant: Variant, point: Point, rows: int) -> range | None:
    """How many rows the scans of a run may return; None where this is not checked."""
    if not point.lookup:
        return None
    # The key is in one of the eight files of a table, whose number of rows is random.
    tenth = point.tables * rows // 10
    return range(2 * tenth) if _sees_key(variant) else range(9 * tenth, 11 * tenth)


def difference(wanted: Mapping[str, int | range], found: Mapping[str, int]) -> str | None:
    """What is wrong with a plan."""
    joins = {name: 0 for name in found if name.endswith("Join")}
    wrong = [
        f"{found.get(name, 0)} {name} for {allowed}"
        for name, allowed in {**joins, **wanted}.items()
        if found.get(name, 0) not in (allowed if isinstance(allowed, range) else (allowed,))
    ]
    return f"plan has {', '.join(wrong)}" if wrong else None
