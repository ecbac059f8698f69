"""What a plan costs at a glance: how often rows are shuffled and sorted, by which joins."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pyspark.sql import DataFrame

from pyspark_skewext._plans import node_names

OPERATOR = "MultiFullJoin"
"""Name of our operator in Spark plans."""


@dataclass(frozen=True)
class PlanShape:
    """The operators that matter for the cost of a join."""

    exchanges: int
    sorts: int
    joins: dict[str, int]

    @property
    def is_ours(self) -> bool:
        """Whether the join is one N-way operator and nothing else."""
        return self.joins == {OPERATOR: 1}

    def describe_joins(self) -> str:
        """For example ``5 x SortMergeJoin``."""
        return ", ".join(f"{n} x {name}" for name, n in sorted(self.joins.items()))


def plan_shape(df: DataFrame) -> PlanShape:
    """Count shuffles, sorts and joins of the plan that Spark makes for `df`.

    It is the plan before adaptive execution changes it, hence the same in every run. Nothing is
    executed.
    """
    names = Counter(node_names(df))
    return PlanShape(
        exchanges=names["Exchange"] + names["BroadcastExchange"],
        sorts=names["Sort"],
        joins={name: n for name, n in names.items() if name.endswith("Join")},
    )
