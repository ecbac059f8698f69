"""The ways to write the join, and what their plans must look like.

A variant whose plan is another one than its name says would be a wrong figure, so every run's
plan is compared with `Variant.plan`: counts of the operators that matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Callable

from pyspark.sql import functions as F

from harness import technique_plans
from harness.case import Point
from harness.data import LOOKED_UP, LOOKUP_BUCKETS, keys_of, unique_keys
from harness.queries import LOOKUPS, QUERIES
from harness.technique_plans import FAMILY, TECHNIQUES, joined_by, technique_plan
from pyspark_skewext import multi_full_join, multi_join

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Build = Callable[[Sequence["DataFrame"], Sequence[str], Point], "DataFrame"]
Plan = dict[str, int]

SWITCH = "spark.skewext.enabled"
BULK_ROWS = "spark.skewext.shuffle.bulkRows.enabled"
BY_COLUMN = "spark.skewext.shuffle.columns.enabled"
SKEW = "spark.skewext.skew.enabled"
BUCKET_SKEW = "spark.skewext.bucket.skew.enabled"
COUNTING = "spark.skewext.skew.output.sparkJoins.enabled"
MARKING = "spark.skewext.skew.marking.enabled"
RUNTIME_FILTER = "spark.skewext.multiJoin.runtimeFilter.enabled"
MAX_BROADCAST = "spark.skewext.skewJoin.maxBroadcastBytes"


@dataclass(frozen=True)
class Variant:
    """One way to get the answer, or, without an answer, a bound on what it must cost."""

    name: str
    #: "stock", "ours", "comet", "bound", or a family of its own.
    family: str
    #: None: it is compared with the other variants' plans instead.
    plan: Callable[[int], Plan] | None
    build: Build | None = None
    #: "plain" or "comet".
    session: str = "plain"
    #: Settings for this variant alone.
    conf: dict[str, str] = field(default_factory=dict)
    #: Right only where no table has a key twice or a null one.
    needs_unique_keys: bool = False
    min_tables: int = 2


def _hinted(right: DataFrame, hint: str | None) -> DataFrame:
    return right.hint(hint) if hint else right


def _chain(hint: str | None) -> Build:
    def build(tables: Sequence[DataFrame], keys: Sequence[str], point: Point) -> DataFrame:
        joined, *others = tables
        for table, kind in zip(others, point.kinds):
            joined = joined.join(_hinted(table, hint), list(keys), kind)
        return joined

    return build


def _bushy(hint: str | None) -> Build:
    """Pairs of tables, then pairs of pairs: narrower rows are shuffled again than in a chain."""

    def build(tables: Sequence[DataFrame], keys: Sequence[str], point: Point) -> DataFrame:
        if len(tables) == 1:
            return tables[0]
        half = (len(tables) + 1) // 2
        right = _hinted(build(tables[half:], keys, point), hint)
        return build(tables[:half], keys, point).join(right, list(keys), "full")

    return build


def _union(tables: Sequence[DataFrame], keys: Sequence[str], _: Point) -> DataFrame:
    """All rows below each other, a struct a table, the first struct of a key that is not null."""
    values = [[c for c in t.columns if c not in keys] for t in tables]
    structs = [
        t.select(F.struct(*names).alias("s")).schema["s"].dataType
        for t, names in zip(tables, values)
    ]
    aligned = [
        table.select(
            *keys,
            *(
                (F.struct(*values[j]) if i == j else F.lit(None).cast(structs[j])).alias(f"s{j}")
                for j in range(len(tables))
            ),
        )
        for i, table in enumerate(tables)
    ]
    together = reduce(lambda above, below: above.unionByName(below), aligned)
    firsts = (F.first(f"s{j}", ignorenulls=True).alias(f"s{j}") for j in range(len(tables)))
    return (
        together.groupBy(*keys).agg(*firsts).select(*keys, *(f"s{j}.*" for j in range(len(tables))))
    )


def _ours(tables: Sequence[DataFrame], keys: Sequence[str], point: Point) -> DataFrame:
    on = list(keys)
    if point.how == "full-inner":
        # One of the first two must be there: no roles say that, but a join in the join does.
        return multi_join(multi_full_join(*tables[:2], on=on), *tables[2:], on=on, how="inner")
    return multi_join(*tables, on=on, how=point.how)


def _query(tables: Sequence[DataFrame], _: Sequence[str], point: Point) -> DataFrame:
    return tables[0].sparkSession.sql({**QUERIES, **LOOKUPS}[str(point.query)])


def _technique(name: str) -> Build:
    def build(tables: Sequence[DataFrame], keys: Sequence[str], point: Point) -> DataFrame:
        return joined_by(name, tables, keys, point.how)

    return build


def _left(second_key: str) -> Build:
    def build(tables: Sequence[DataFrame], keys: Sequence[str], _: Point) -> DataFrame:
        t0, t1, t2 = (t.alias(f"t{i}") for i, t in enumerate(tables))
        first = t0.join(t1, F.col("t0.device_id") == F.col("t1.device_id"), "left")
        both = first.join(t2, F.col(f"t0.{second_key}") == F.col("t2.device_id"), "left")
        values = (f"t{i}.{c}" for i, t in enumerate(tables) for c in t.columns if c not in keys)
        return both.select("t0.device_id", *values)

    return build


def _pairwise(join: str, sorts: bool) -> Callable[[int], Plan]:
    """A shuffle, and perhaps a sort, for each side of each of the `n - 1` joins."""
    return lambda n: {join: n - 1, "Exchange": 2 * (n - 1), "Sort": 2 * (n - 1) if sorts else 0}


def _one_pass(n: int) -> Plan:
    return {"MultiFullJoin": 1, "Exchange": n, "BulkExchange": 0, "ColumnExchange": n, "Sort": 0}


def _one_pass_of_rows(n: int) -> Plan:
    return {**_one_pass(n), "ColumnExchange": 0}


def _merged(n: int) -> Plan:
    return {"MultiFullJoin": 1, "SortMergeJoin": 0, "MergeSortedFiles": n, "Exchange": 0, "Sort": 0}


_OFF = {SWITCH: "false"}
_SMJ = _pairwise("SortMergeJoin", sorts=True)
_SHJ = _pairwise("ShuffledHashJoin", sorts=False)
_HASH = "SHUFFLE_HASH"

VARIANTS = {
    variant.name: variant
    for variant in (
        Variant("sortmerge", "stock", _SMJ, _chain(None), conf=_OFF),
        Variant("shufflehash", "stock", _SHJ, _chain(_HASH), conf=_OFF),
        Variant("bushy-sortmerge", "stock", _SMJ, _bushy(None), conf=_OFF, min_tables=3),
        Variant("bushy-shufflehash", "stock", _SHJ, _bushy(_HASH), conf=_OFF, min_tables=3),
        Variant(
            "union",
            "stock",
            lambda n: {"Union": 1, "SortAggregate": 2, "Exchange": 1, "Sort": 2},
            _union,
            conf=_OFF,
            needs_unique_keys=True,
        ),
        Variant("ours", "ours", _one_pass, _ours),
        Variant(
            "ours-plain",
            "ours with Spark's exchange",
            _one_pass_of_rows,
            _ours,
            conf={BULK_ROWS: "false"},
        ),
        Variant(
            "ours-rows",
            "ours with bulk rows",
            lambda n: {**_one_pass_of_rows(n), "BulkExchange": n},
            _ours,
            conf={BY_COLUMN: "false"},
        ),
        Variant(
            "ours-unfiltered", "ours unfiltered", _one_pass, _ours, conf={RUNTIME_FILTER: "false"}
        ),
        # The same query as "sortmerge"; where all files are sorted, our operator merges them.
        Variant("merged", "ours", _merged, _chain(None)),
        Variant("floor", "bound", lambda n: {"Exchange": n, "Sort": 0}),
        Variant("scan", "bound", lambda n: {"Exchange": 0, "Sort": 0}),
        Variant(
            "comet-sortmerge",
            "comet",
            _pairwise("CometSortMergeJoin", sorts=True),
            _chain(None),
            session="comet",
            conf=_OFF,
        ),
        Variant(
            "comet-shufflehash",
            "comet",
            _pairwise("CometHashJoin", sorts=False),
            _chain(_HASH),
            session="comet",
            conf=_OFF,
        ),
        Variant(
            "comet-ours",
            "ours on comet",
            _one_pass_of_rows,
            _ours,
            session="comet",
        ),
        Variant(
            "left-same-key",
            "stock",
            lambda n: {"SortMergeJoin": 2, "Exchange": 3, "Sort": 3},
            _left("device_id"),
            conf=_OFF,
        ),
        Variant(
            "left-second-key",
            "stock",
            lambda n: {"SortMergeJoin": 2, "Exchange": 4, "Sort": 4},
            _left("device_twin"),
            conf=_OFF,
        ),
        # The same query as "sortmerge", which we may change once its partitions are known.
        Variant("split", "ours", _SMJ, _chain(None)),
        Variant("split-unmarked", "ours unmarked", _SMJ, _chain(None), conf={MARKING: "false"}),
        Variant("whole", "ours unsplit", _one_pass, _ours, conf={SKEW: "false"}),
        Variant("without", "without", None, _query, conf=_OFF),
        Variant("skew-off", "skew-off", None, _query, conf={SKEW: "false"}),
        Variant("skew-on", "skew-on", None, _query),
        Variant(
            "all-buckets",
            "stock",
            lambda n: {"Buckets": LOOKUP_BUCKETS},
            _query,
            conf=_OFF,
            min_tables=1,
        ),
        Variant("one-bucket", "ours", lambda n: {"Buckets": 1}, _query, min_tables=1),
        # What their plans have depends on the join.
        *(Variant(name, FAMILY, lambda n: {}, _technique(name)) for name in TECHNIQUES),
    )
}


def expected_plan(
    variant: Variant, point: Point, chosen: str | None = None
) -> Mapping[str, int | range] | None:
    """Operators that a run of the variant must have had; None: whatever others have.

    `chosen` is the technique that `auto` has taken.
    """
    if variant.family == FAMILY:
        return technique_plan(chosen or variant.name, point)
    if variant.plan is None:
        return None
    plan = dict(variant.plan(point.tables))
    if variant.plan in (_SMJ, _SHJ):
        # All joins are on one key, and its partitions are there after any but a full outer join.
        again = sum(kind == "full" for kind in point.kinds[:-1])
        plan["Exchange"] = point.tables + again
        plan["Sort"] = plan["Exchange"] if plan["Sort"] else 0
    if point.few and variant.conf.get(RUNTIME_FILTER) != "false":
        # The bloom filter is made by a shuffle of its own.
        plan["Exchange"] += int(variant.family in ("stock", "ours"))
    if variant.plan is _one_pass and point.how == "full-inner":
        plan["MultiFullJoin"] = 2
    if variant.plan is _one_pass and point.one_mapper:
        # What is put together above a scan comes as rows.
        plan["BulkExchange"] += 1
        plan["ColumnExchange"] -= 1
    if point.skewed:
        shuffles = {"Exchange": 0} if point.bucketed else {}
        return _expected_split(variant, point, {**plan, **shuffles})
    if point.bucketed and variant.family != "bound":
        # Only what a join has put out must be shuffled and sorted again. Ours needs neither.
        again = point.tables - 2 if variant.family == "stock" and point.how == "full" else 0
        plan["Exchange"] = again
        plan["BulkExchange"] = 0
        plan["ColumnExchange"] = 0
        # Of several files a bucket Spark sorts the rows of all.
        unsorted = point.tables if point.kind == "appends" and variant.family == "stock" else 0
        plan["Sort"] = again + unsorted if plan["Sort"] else 0
        plan.setdefault("MergeSortedFiles", 0)
    if point.shape == "count" and variant.build is not None:
        plan["Exchange"] += 1
        if variant.name == "union":
            # No structs are left, so their group-by is one by hash.
            plan.update(SortAggregate=0, Sort=0)
    if point.shape == "lookup":
        plan["ScanByKey"] = point.tables if _sees_key(variant) else 0
    return plan


def _sees_key(variant: Variant) -> bool:
    """Whether its scans see a condition above: a group-by lets it through, full joins do not."""
    return variant.family in ("ours", "bound") or variant.name == "union"


def rows_scanned(variant: Variant, point: Point, rows: int) -> range | None:
    """How many rows the scans of a run may have given; None: whatever they give."""
    if point.shape != "lookup":
        return None
    # The key is in one of a table's eight files. How many rows a table has is left to chance.
    tenth = point.tables * rows // 10
    return range(2 * tenth) if _sees_key(variant) else range(9 * tenth, 11 * tenth)


def _expected_split(variant: Variant, point: Point, plan: Plan) -> Plan | None:
    """The plan, and by whom joins in it are split."""
    if variant.family not in ("ours", "ours unmarked"):
        return {**plan, "OursSplit": 0, "SparkSplit": int(point.split == "spark")}
    if point.split is None:
        return None
    if point.split == "ours":
        # One join of all inputs, of shuffles that were there.
        shuffles = 0 if point.bucketed else point.tables
        return {"MultiFullJoin": 1, "Exchange": shuffles, "OursSplit": 1, "SparkSplit": 0}
    return {**plan, "OursSplit": 0, "SparkSplit": int(point.split == "spark")}


def arranged(tables: Sequence[DataFrame], point: Point) -> list[DataFrame]:
    """The tables as the point wants them joined."""
    first, *others = tables
    if point.few:
        first = first.where("t0_m1 < 10")
    found = [first.coalesce(1) if point.one_mapper else first, *others]
    return found[::-1] if point.swapped else found


def suits(variant: Variant, point: Point) -> bool:
    """Whether the variant gives the right answer here, and is not another one's twin."""
    if variant.family == FAMILY and not technique_plans.suits(variant.name, point):
        return False
    return point.tables >= variant.min_tables and (
        unique_keys(point.kind) or not variant.needs_unique_keys
    )


def shaped(joined: DataFrame, tables: Sequence[DataFrame], point: Point) -> DataFrame:
    """Put above the join what the point wants there."""
    if point.shape == "count":
        return joined.groupBy().count()
    if point.shape == "two":
        return joined.select(*_two(tables, point))
    if point.shape == "lookup":
        return joined.where(F.col(keys_of(point.kind)[0]) == LOOKED_UP)
    return joined


def needed(tables: Sequence[DataFrame], point: Point) -> list[DataFrame]:
    """What must be read and shuffled for that, at least."""
    keys = keys_of(point.kind)
    if point.shape == "all":
        return list(tables)
    if point.shape == "lookup":
        return [shaped(table, tables, point) for table in tables]
    columns = _two(tables, point) if point.shape == "two" else []
    return [t.select(*keys, *(c for c in t.columns if c in columns)) for t in tables]


def _two(tables: Sequence[DataFrame], point: Point) -> list[str]:
    """First value column of the first and of the last table."""
    keys = keys_of(point.kind)
    return [next(c for c in t.columns if c not in keys) for t in (tables[0], tables[-1])]
