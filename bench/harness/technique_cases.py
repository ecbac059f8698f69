"""`skew_join`: every technique and every kind of join, over three kinds of skew."""

from __future__ import annotations

from harness.case import Case, Goal, Point
from harness.technique_plans import STOCK_VARIANT, TECHNIQUES

HOWS = ("full", "left", "right", "inner", "left_semi", "left_anti")
"""The rows of the matrix. The goal of the first one is about the best technique."""

#: Who splits which join of which the left table is skewed: Spark where it can, we the others.
_BY_LEFT = {"full": "ours", "right": "ours"}

#: Of which no partition is large, but what comes out of one. A semi or an anti join gives no more
#: than it reads.
_BY_OUTPUT = {"left_semi": "nobody", "left_anti": "nobody"}


def _matrix(name: str, kind: str, about: str, *goals: Goal, in_look: bool = False) -> Case:
    # 8,000,000 rows at full scale, and 2,000,000 in the other table.
    by_output = kind == "both"
    splits = _BY_OUTPUT if by_output else _BY_LEFT
    usual = "ours" if by_output else "spark"
    points = tuple(
        Point(
            how,
            kind=kind,
            tables=2,
            share=2.0,
            how=how,
            split=splits.get(how, usual),
            broadcasts=True,
        )
        for how in HOWS
    )
    never_slower = Goal("auto", STOCK_VARIANT, "<=", 1.1, quantity="every")
    return Case(
        name,
        about,
        points,
        (STOCK_VARIANT, *TECHNIQUES),
        (*goals, never_slower),
        session="technique",
        is_matrix=True,
        in_look=in_look,
    )


TECHNIQUE_CASES = (
    _matrix(
        "technique-hot",
        "hot",
        "skew_join, half of the left rows have one key",
        Goal(STOCK_VARIANT, "technique", ">=", 3.0),
        in_look=True,
    ),
    _matrix(
        "technique-zipf",
        "zipf",
        "skew_join, the left keys are as frequent as Zipf's law has it, with an exponent of 1.5",
    ),
    _matrix(
        "technique-both",
        "both",
        "skew_join, thousands of rows of one key on both sides: their product is 25,000,000 rows",
    ),
)
