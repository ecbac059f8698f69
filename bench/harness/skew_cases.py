"""The cases with a hot key, and the one without, in which nothing may cost anything."""

from __future__ import annotations

from dataclasses import replace

from harness.case import Case, Goal, Point
from harness.queries import QUERIES

# 8,000,000 rows at full scale, half of them with one key, and 2,000,000 in each of the others.
_HOT = Point("N=2", kind="hot", tables=2, share=2.0, split="ours")

# Of 16 partitions, the one with all null keys is less than five times as large as others: to Spark,
# and to us, it is not skewed.
_NULLS = replace(_HOT, kind="hotnulls", partitions=64)

LOOK = ("skew-full-left", "skew-three-joins", "skew-nulls-full")
"""Of those that differ in a join or a side, the ones that a look at everything has."""


def _even(variant: str) -> Goal:
    return Goal(variant, variant, "<=", 2.0, quantity="tasks")


def _skew(name: str, about: str, point: Point, *goals: Goal, also: tuple[str, ...] = ()) -> Case:
    """Spark's join as it plans it, beside the same query with us; where Spark splits, it stays."""
    if point.split == "spark":
        goals = (*goals, Goal("split", "sortmerge", "<=", 1.05))
    variants = ("sortmerge", *also, "split")
    in_look = name in LOOK
    goals = (*goals, _even("split"))
    return Case(name, about, (point,), variants, goals, session="skew", in_look=in_look)


SKEW_CASES = (
    _skew(
        "skew-full-left",
        "full outer join, the hot key on the left",
        _HOT,
        Goal("sortmerge", "split", ">=", 1.9),
        also=("shufflehash",),
    ),
    _skew(
        "skew-full-right",
        "full outer join, the hot key on the right",
        replace(_HOT, swapped=True),
        Goal("sortmerge", "split", ">=", 1.9),
    ),
    Case(
        "skew-n4",
        "4 tables, full outer, the hot key in the first",
        (replace(_HOT, label="N=4", tables=4),),
        ("sortmerge", "shufflehash", "whole", "ours"),
        (Goal("sortmerge", "ours", ">=", 2.9), _even("ours")),
        session="skew",
    ),
    _skew(
        "skew-left-left",
        "left join, the hot key on the left",
        replace(_HOT, how="left", split="spark"),
    ),
    _skew(
        "skew-left-right",
        "left join, the hot key on the right",
        replace(_HOT, how="left", swapped=True),
    ),
    _skew("skew-right-left", "right join, the hot key on the left", replace(_HOT, how="right")),
    _skew(
        "skew-right-right",
        "right join, the hot key on the right",
        replace(_HOT, how="right", swapped=True, split="spark"),
    ),
    _skew(
        "skew-semi-left",
        "left semi join, the hot key on the left",
        replace(_HOT, how="semi", split="spark"),
    ),
    _skew(
        "skew-semi-right",
        "left semi join, the hot key on the right",
        replace(_HOT, how="semi", swapped=True),
    ),
    _skew(
        "skew-anti-left",
        "left anti join, the hot key on the left",
        replace(_HOT, how="anti", split="spark"),
    ),
    # Of the right side of a semi or anti join only keys travel. Millions of equal ones are
    # compressed to so little that no partition is skewed in bytes: it is, in rows.
    _skew(
        "skew-anti-right",
        "left anti join, the hot key on the right",
        replace(_HOT, how="anti", swapped=True),
    ),
    _skew(
        "skew-inner",
        "inner join, the hot key on the left",
        replace(_HOT, how="inner", split="spark"),
    ),
    _skew(
        "skew-one-mapper",
        "full outer join, one map task writes the table with the hot key",
        replace(_HOT, one_mapper=True),
    ),
    _skew(
        "skew-three-joins",
        "three left joins on one key in a stage, the hot key in the first table",
        replace(_HOT, label="N=4", tables=4, how="left"),
    ),
    _skew(
        "skew-nulls-full",
        "full outer join, 30 % null keys on the left, 64 partitions",
        replace(_NULLS, split="ours"),
    ),
    _skew(
        "skew-nulls-left",
        "left join, 30 % null keys on the left, 64 partitions",
        replace(_NULLS, how="left", split="spark"),
    ),
    _skew(
        "skew-product",
        "full outer join, thousands of rows of one key on both sides",
        replace(_HOT, kind="product", share=0.1),
        Goal("sortmerge", "split", ">=", 8.0),
    ),
    Case(
        "skew-rows",
        "cost of a full outer join with a hot key against its rows",
        tuple(replace(_HOT, label=f"x{share:g}", share=share) for share in (0.125, 0.5, 2.0)),
        ("sortmerge", "split", "split-unmarked"),
        axis="rows",
        session="skew",
        in_look=False,
    ),
    Case(
        "skew-none",
        "no skew at all: queries of two to four joins and group-bys over small tables",
        tuple(
            Point(name, kind="star", tables=5, share=0.1, coalesce=True, query=name)
            for name in QUERIES
        ),
        ("without", "skew-off", "skew-on"),
        (Goal("skew-on", "skew-off", "<=", 1.01, quantity="overhead"),),
        repeats=5,
    ),
)

SKEWED_BUCKETS = Case(
    "buckets-skew",
    "full outer join of 2 tables in 16 buckets, 8 files each: the hot key in one bucket",
    (replace(_HOT, kind="hotbuckets"),),
    ("sortmerge", "shufflehash", "split"),
    (Goal("sortmerge", "split", ">=", 1.5), _even("split")),
    session="skew",
    in_look=False,
)
"""No shuffle, and so none of which adaptive execution would know the sizes."""
