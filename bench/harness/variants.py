"""The variants: each is one way to write the same join, or a lower bound on its cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Callable

from pyspark.sql import functions as F

from harness import as_of, peers
from harness.case import Point
from harness.data import LOOKED_UP, keys_of, unique_keys
from harness.duck import ByDuckDB, full_joins
from harness.queries import QUERIES
from pyspark_skewext import multi_join, skew_join

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Build = Callable[[Sequence["DataFrame"], Sequence[str], Point], "DataFrame"]

# The settings of the extension that the benchmarks change.
SWITCH = "spark.skewext.enabled"
OWN_SHUFFLE = "spark.skewext.shuffle.enabled"
SKEW = "spark.skewext.skew.enabled"
ASOF_SQL = "spark.sql.join.asofJoin.enabled"
SPARK_SKEW = "spark.sql.adaptive.skewJoin.enabled"
OUTPUT_SKEW = "spark.skewext.skew.outputSkew.mode"
RUNTIME_FILTER = "spark.skewext.multiJoin.runtimeFilter.enabled"
SPREAD_NULLS = "spark.skewext.multiJoin.spreadNullKeys.enabled"
MAX_BROADCAST = "spark.skewext.skewJoin.maxBroadcastBytes"

STOCK_VARIANT = "sortmerge"
"""Spark's own plan, with which techniques are compared."""

AUTO = "auto"
TECHNIQUES = (AUTO, "adaptive", "salted", "broadcast", "broadcast_map", "iterative_broadcast")
TECHNIQUE = "technique"
"""The family of the techniques of `skew_join`."""

DUCKDB = "duckdb"
"""The family of the variants that DuckDB runs."""


@dataclass(frozen=True)
class Variant:
    """One way to get the answer, or, without `build`, a lower bound on its cost."""

    name: str
    #: "stock", "ours", "comet", "bound", or a family of its own.
    family: str
    build: Build | None = None
    #: Settings of this variant alone.
    conf: dict[str, str] = field(default_factory=dict)
    #: "plain" or "comet".
    session: str = "plain"
    min_tables: int = 2
    #: The line of Spark that has it first.
    since: str = ""

    def suits(self, point: Point) -> bool:
        """Whether the answer is right here, and the variant is not the same as another one."""
        if self.name == "broadcast" and point.how == "full":
            # Spark cannot broadcast a side of a full join: it is `broadcast_map` there.
            return False
        unique = unique_keys(point.kind) or self.name != "union"
        return point.tables >= self.min_tables and unique


def _hinted(right: DataFrame, hint: str | None) -> DataFrame:
    return right.hint(hint) if hint else right


def _chain(hint: str | None = None) -> Build:
    def build(tables: Sequence[DataFrame], keys: Sequence[str], point: Point) -> DataFrame:
        joined, *others = tables
        for table in others:
            joined = joined.join(_hinted(table, hint), list(keys), point.how)
        return joined

    return build


def _bushy(hint: str | None = None) -> Build:
    """Join pairs of tables, then pairs of pairs: the rows that are shuffled again are narrower."""

    def build(tables: Sequence[DataFrame], keys: Sequence[str], point: Point) -> DataFrame:
        if len(tables) == 1:
            return tables[0]
        half = (len(tables) + 1) // 2
        right = _hinted(build(tables[half:], keys, point), hint)
        return build(tables[:half], keys, point).join(right, list(keys), "full")

    return build


def _union(tables: Sequence[DataFrame], keys: Sequence[str], _: Point) -> DataFrame:
    """A union with one struct column for each table, then the first struct of each key."""
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
    return multi_join(*tables, on=list(keys), how=point.how)


def _query(tables: Sequence[DataFrame], _: Sequence[str], point: Point) -> DataFrame:
    return tables[0].sparkSession.sql(QUERIES[str(point.query)])


def _technique(name: str) -> Build:
    """A technique without options, which its user would have to find."""

    def build(tables: Sequence[DataFrame], keys: Sequence[str], point: Point) -> DataFrame:
        left, right = tables
        return skew_join(left, right, list(keys), point.how, name)

    return build


_OFF = {SWITCH: "false"}
_HASH = "SHUFFLE_HASH"

VARIANTS = {
    variant.name: variant
    for variant in (
        Variant("sortmerge", "stock", _chain(), _OFF),
        Variant("shufflehash", "stock", _chain(_HASH), _OFF),
        Variant("bushy-sortmerge", "stock", _bushy(), _OFF, min_tables=3),
        Variant("bushy-shufflehash", "stock", _bushy(_HASH), _OFF, min_tables=3),
        Variant("union", "stock", _union, _OFF),
        Variant("ours", "ours", _ours),
        Variant("ours-plain", "ours with Spark's exchange", _ours, {OWN_SHUFFLE: "false"}),
        Variant("ours-unfiltered", "ours unfiltered", _ours, {RUNTIME_FILTER: "false"}),
        Variant("floor", "bound"),
        Variant("scan", "bound"),
        Variant("comet-sortmerge", "comet", _chain(), _OFF, "comet"),
        Variant("comet-shufflehash", "comet", _chain(_HASH), _OFF, "comet"),
        # Comet has no hash of the expression that spreads null keys.
        Variant("comet-ours", "ours on comet", _ours, {SPREAD_NULLS: "false"}, "comet"),
        Variant("duckdb", DUCKDB, ByDuckDB(full_joins)),
        # The query of "sortmerge", whose partitions the extension may split at run time.
        Variant("split", "ours", _chain()),
        Variant("whole", "ours unsplit", _ours, {SKEW: "false"}),
        Variant("without", "without", _query, _OFF),
        # Spark would split its own joins, and these would then stay Spark's.
        Variant("skew-off", "skew-off", _query, {SKEW: "false", SPARK_SKEW: "false"}),
        Variant("skew-all", "skew-all", _query, {OUTPUT_SKEW: "all"}),
        Variant("skew-on", "skew-on", _query),
        *(Variant(name, TECHNIQUE, _technique(name)) for name in TECHNIQUES),
        Variant("asof-pairs", "stock", as_of.by_pairs, _OFF),
        Variant("asof-union", "stock", as_of.by_union, _OFF),
        Variant("asof-spark", "stock", as_of.by_asof_sql, {**_OFF, ASOF_SQL: "true"}, since="4.3"),
        Variant("asof", "ours", as_of.by_asof_join),
        Variant("asof-duckdb", DUCKDB, ByDuckDB(as_of.duckdb_query)),
        Variant("asof-tempo", "tempo", peers.by_tempo, _OFF),
        Variant("asof-feast", "feast", peers.by_feast, _OFF),
        Variant("asof-polars", "polars", peers.ByPolars()),
        Variant("merge-asof", "stock", as_of.by_merge_asof, _OFF),
        Variant("merge-asof-ours", "ours", as_of.by_merge_asof),
        Variant("latest-window", "stock", as_of.by_row_number, _OFF, min_tables=1),
        Variant("latest-max-by", "stock", as_of.by_max_by, _OFF, min_tables=1),
        Variant("latest", "ours", as_of.by_latest, min_tables=1),
    )
}


def frames(variant: Variant, tables: Sequence[DataFrame], point: Point) -> list[DataFrame]:
    """The query of a variant; the bounds have one for each table."""
    keys = keys_of(point.kind)
    if variant.build is not None:
        return [_looked_up(variant.build(_arranged(tables, point), keys, point), point)]
    inputs = [_looked_up(table, point) for table in tables]
    if variant.name == "floor":
        # Without a number of partitions adaptive execution handles it like the exchange of a join.
        return [table.repartition(*keys) for table in inputs]
    return inputs


def _arranged(tables: Sequence[DataFrame], point: Point) -> list[DataFrame]:
    first, *others = tables
    if point.few:
        first = first.where("t0_m1 < 10")
    found = [first.coalesce(1) if point.one_mapper else first, *others]
    return found[::-1] if point.swapped else found


def _looked_up(frame: DataFrame, point: Point) -> DataFrame:
    return frame.where(F.col(keys_of(point.kind)[0]) == LOOKED_UP) if point.lookup else frame
