"""The techniques of `skew_join` as variants: their options, and what their plans must look like."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.case import Point
from pyspark_skewext import explain, skew_join

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STOCK_VARIANT = "sortmerge"
"""What techniques are compared with: Spark's plan of `left.join(right)`, adaptive as by default."""

AUTO = "auto"
TECHNIQUES = (AUTO, "adaptive", "salted", "broadcast", "broadcast_map", "iterative_broadcast")

FAMILY = "technique"

ANY = range(100)
SOME = range(1, 100)

#: How many there are, or may be, of an operator.
Expected = dict[str, "int | range"]

#: What each puts into the plan, if that does not depend on the join. Joins that are not named here
#: must not be there.
_PLANS: dict[str, Expected] = {
    "broadcast": {"BroadcastHashJoin": 1, "BroadcastExchange": 1, "Exchange": 0},
    "broadcast_map": {
        "BroadcastHashJoin": ANY,
        "MarkedBroadcastJoin": ANY,
        "BroadcastExchange": SOME,
    },
    # The keys that were met are shuffled, if Spark does not broadcast them.
    "iterative_broadcast": {
        "BroadcastHashJoin": SOME,
        "BroadcastExchange": SOME,
        "SortMergeJoin": ANY,
    },
    "salted": {"SaltKeys": 2, "SortMergeJoin": ANY, "MultiFullJoin": ANY, "BroadcastHashJoin": 0},
}


def joined_by(
    technique: str, tables: Sequence[DataFrame], keys: Sequence[str], how: str
) -> DataFrame:
    """The join, without any option that the user of a technique would have to find out."""
    left, right = tables
    return skew_join(left, right, list(keys), how, technique)


def technique_plan(technique: str, point: Point) -> Expected:
    """Operators that a run must have had."""
    if technique == "adaptive":
        if point.split == "ours":
            # One join of both inputs, of shuffles that were there.
            return {"MultiFullJoin": 1, "Exchange": 2, "OursSplit": 1, "SparkSplit": 0}
        spark = int(point.split == "spark")
        return {"SortMergeJoin": 1, "Exchange": 2, "OursSplit": 0, "SparkSplit": spark}
    if technique == "salted" and point.kind == "both":
        # No key has more rows than a partition: the join is Spark's own, which we may split.
        return technique_plan("adaptive", point)
    return _PLANS[technique]


def technique_of(joined: DataFrame) -> dict[str, str]:
    """Which technique has made a join, and what it says of itself."""
    said = explain(joined).joins[0]["origin"]["text"]
    found = re.match(r"skew_join by (\w+): (.*)", said)
    return {"technique": found[1], "how": found[2]} if found else {"how": said}


def suits(technique: str, point: Point) -> bool:
    """Whether the technique is another one here, which has its own place."""
    return technique != "broadcast" or point.how != "full"
