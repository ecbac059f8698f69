"""Physical plans: as text, which a session of Spark Connect has as well, and by operator."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from typing import Any

from pyspark.sql import DataFrame


def plan_of(df: DataFrame) -> str:
    """The physical plan."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        df.explain()
    return without_explanation(printed.getvalue())


def without_explanation(plan: str) -> str:
    """The text of a plan without what skewext adds to it on Spark 4."""
    return plan.split("\n== Extended Information (skewext) ==")[0]


def node_names(df: DataFrame) -> list[str]:
    """List the operators in the plan, as it is before anything runs.

    The plan inside a cached table does not count: its work has been done.
    """
    plan: Any = df._jdf.queryExecution().executedPlan()
    return _names(plan)


def exchange_count(df: DataFrame) -> int:
    """Count the shuffles in the plan."""
    return node_names(df).count("Exchange")


def _names(plan: Any) -> list[str]:
    name = str(plan.nodeName())
    if name == "AdaptiveSparkPlan":
        return _names(plan.initialPlan())
    # Whole-stage code generation writes itself as "WholeStageCodegen (1)".
    names = [name.split(" ")[0]]
    children = plan.children()
    for position in range(children.size()):
        names += _names(children.apply(position))
    return names
