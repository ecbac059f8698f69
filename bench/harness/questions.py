"""Queries in SQL over Parquet files, and the ways in which sessions run them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.variants import SWITCH

#: Joins of Spark's, by the names that plans have.
_SPARK = (
    "SortMergeJoin",
    "ShuffledHashJoin",
    "BroadcastHashJoin",
    "BroadcastNestedLoopJoin",
    "CartesianProduct",
)
SHUFFLED = _SPARK[:2]
OURS, COMET = "ours", "comet"


@dataclass(frozen=True)
class Way:
    """How a query is run, in a session of its own."""

    name: str
    #: Settings of this way alone.
    conf: dict[str, str] = field(default_factory=dict)
    #: The session: "comet", or the name of one of plain Spark.
    session: str = "stock"
    #: Whether a hint asks Spark for a hash join.
    hinted: bool = False
    #: The join of a query with one shuffled join.
    join: str = OURS
    #: The engine, if it is not Spark: "duckdb" or "polars".
    engine: str = ""

    def with_settings(self, more: dict[str, str]) -> Way:
        """The same with more settings."""
        return replace(self, conf={**self.conf, **more})


_OFF = {SWITCH: "false"}

WAYS = {
    way.name: way
    for way in (
        Way("stock", _OFF, join="SortMergeJoin"),
        Way("stock-hash", _OFF, hinted=True, join="ShuffledHashJoin"),
        Way("ours", {SWITCH: "true"}, session="ours"),
        Way("comet", _OFF, session="comet", hinted=True, join=COMET),
        # Stock Spark runs what a user would write by hand.
        Way("by-hand", _OFF, join=""),
        Way("duckdb", _OFF, join="", engine="duckdb"),
        Way("polars", _OFF, join="", engine="polars"),
    )
}


@dataclass(frozen=True)
class Question:
    """A query, and what its plan must have."""

    name: str
    about: str
    #: With `{hint}` behind SELECT where a hint may ask for a hash join.
    sql: str
    #: The folder of its tables, a Parquet file for each.
    data: Path
    #: Settings of all ways.
    conf: dict[str, str] = field(default_factory=dict)
    #: The table of the hint.
    hint: str = ""
    #: Whether it has one join, which is shuffled.
    one_join: bool = False
    #: Whether Spark's statistics of the tables are collected.
    analyzed: bool = False
    #: Names of ways.
    ways: tuple[str, ...] = ("stock", "ours")
    #: The query of the way "by-hand".
    by_hand: str = ""
    #: The number of pairs of rows, and the query with fewer pairs that stock Spark runs instead.
    pairs: int = 0
    smaller: str = ""

    def text(self, way: Way) -> str:
        """The query as the way runs it."""
        hint = f"/*+ SHUFFLE_HASH({self.hint}) */" if way.hinted and self.hint else ""
        return (self.by_hand if way.name == "by-hand" else self.sql).replace("{hint}", hint)

    def settings(self, way: Way) -> dict[str, str]:
        """The settings with which the way runs it."""
        return {**self.conf, **way.conf}

    def problem(self, way: Way, joins: Mapping[str, int]) -> str | None:
        """What is wrong with a plan."""
        kinds = {family(name) for name in joins}
        if way.join != OURS and OURS in kinds:
            return f"the plan has joins of ours: {described(joins)}"
        if self.one_join and kinds != {way.join}:
            return f"the plan has {described(joins)} for {way.join}"
        return None


def is_join(operator: str) -> bool:
    """Whether an operator is a join; a join that we have split counts as "OursSplit" only."""
    return operator.endswith("Join") or operator in (*_SPARK, "OursSplit")


def family(join: str) -> str:
    """Spark's joins have their names, others the name of who made them."""
    if join in _SPARK:
        return join
    return COMET if join.startswith("Comet") else OURS


def described(joins: Mapping[str, int]) -> str:
    """Joins by name."""
    return ", ".join(f"{count} {name}" for name, count in joins.items()) or "no join"
