"""The cases: which tables, which settings, which variants take turns, and what should come out."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatch

from harness.case import BOUNDS, CHAINS, STOCK, Case, Goal, Point
from harness.skew_cases import SKEW_CASES, SKEWED_BUCKETS
from harness.technique_cases import TECHNIQUE_CASES

COMET = ("comet-sortmerge", "comet-shufflehash", "comet-ours")


def _stock_over_ours(bound: float) -> Goal:
    return Goal("stock", "ours", ">=", bound)


def _case(
    name: str, about: str, point: Point, *goals: Goal, variants: tuple[str, ...] | None = None
) -> Case:
    case = Case(name, about, (point,), goals=goals)
    return case if variants is None else replace(case, variants=variants)


_STRING = Point("N=4")

# Not the joins that this is for: is one operator better than Spark's chain there, too?
_MIXED = tuple(
    Case(
        name,
        about,
        (Point(f"N={tables}", tables=tables, how=how),),
        variants=(*CHAINS, "ours", "floor"),
        in_look=False,
    )
    for name, about, tables, how in (
        ("inner-4", "4 tables, inner joins", 4, "inner"),
        ("inner-8", "8 tables, inner joins", 8, "inner"),
        ("left-4", "4 tables, left joins", 4, "left"),
        ("left-8", "8 tables, left joins", 8, "left"),
        (
            "full-inner",
            "3 tables: a full outer join, and an inner join with its result",
            3,
            "full-inner",
        ),
    )
)

CASES = (
    _case(
        "n4-string-16",
        "4 tables, 16-character keys, 16 partitions",
        _STRING,
        _stock_over_ours(3.3),
        Goal("ours", "floor", "<=", 0.8),
        Goal("comet", "ours", ">=", 1.6),
        variants=(*STOCK, "ours", "ours-plain", "ours-rows", *BOUNDS, *COMET),
    ),
    _case(
        "n8-string-16",
        "8 tables, 16-character keys, 16 partitions",
        Point("N=8", tables=8),
        _stock_over_ours(4.8),
        Goal("ours", "floor", "<=", 0.65),
        Goal("comet", "ours", ">=", 3.0),
        variants=(*STOCK, "ours", "ours-plain", "ours-rows", *BOUNDS, *COMET),
    ),
    _case(
        "n4-string-64",
        "4 tables, 64 partitions, none put together",
        replace(_STRING, partitions=64),
        _stock_over_ours(2.2),
    ),
    _case(
        "n4-string-200",
        "4 tables, 200 partitions, none put together",
        replace(_STRING, partitions=200),
        _stock_over_ours(2.0),
    ),
    _case(
        "n4-adaptive",
        "4 tables, Spark's defaults: 200 partitions that adaptive execution puts together",
        replace(_STRING, partitions=200, coalesce=True),
    ),
    _case("n4-long", "4 tables, long keys", Point("N=4", kind="long"), _stock_over_ours(4.0)),
    _case(
        "n8-long",
        "8 tables, long keys",
        Point("N=8", kind="long", tables=8),
        _stock_over_ours(3.5),
    ),
    _case(
        "n2",
        "2 tables: the join that stock Spark has one operator for",
        Point("N=2", tables=2),
        _stock_over_ours(1.0),
    ),
    _case(
        "bucketed",
        "4 tables stored in 16 buckets on the key, one sorted file a bucket",
        Point("N=4", kind="bucketed"),
        _stock_over_ours(3.0),
        variants=(*CHAINS, "ours", "scan"),
    ),
    _case(
        "buckets-appends",
        "4 tables stored in 16 buckets on the key, written in 4 parts: 4 sorted files a bucket",
        Point("N=4", kind="appends"),
        _stock_over_ours(2.0),
        variants=(*CHAINS, "ours", "scan"),
    ),
    _case(
        "buckets-inner",
        "2 such tables, inner join, as Spark's API has it",
        Point("N=2", kind="appends", tables=2, how="inner"),
        Goal("sortmerge", "merged", ">=", 1.3),
        variants=(*CHAINS, "merged", "ours", "scan"),
    ),
    _case(
        "buckets-lookup",
        "a few rows of a table of 64 buckets, looked up by both of its bucket columns",
        Point("1 of 64", kind="lookup", tables=1, query="lookup"),
        _stock_over_ours(1.5),
        variants=("all-buckets", "one-bucket"),
    ),
    _case(
        "duplicates",
        "4 tables, 10 rows a key in the second and the fourth",
        Point("N=4", kind="duplicates", share=0.25),
        _stock_over_ours(1.0),
    ),
    _case(
        "payload200",
        "4 tables, one more column of 200 bytes in each",
        Point("N=4", kind="payload200", share=0.5),
        _stock_over_ours(1.0),
    ),
    _case(
        "wide-1000",
        "4 tables, 10 value columns in each, 1,000 partitions",
        Point("N=4", kind="ten", partitions=1000, share=0.5),
        Goal("ours-rows", "ours", ">=", 1.0),
        Goal("ours", "ours-rows", "<=", 1.0, quantity="shuffled"),
        variants=("ours", "ours-rows", "floor"),
    ),
    _case(
        "threekeys",
        "4 tables, joined on a string, a long and a date",
        Point("N=4", kind="threekeys"),
        _stock_over_ours(1.0),
    ),
    _case(
        "nulls30",
        "4 tables, 30 % of the keys are null",
        Point("N=4", kind="nulls30"),
        _stock_over_ours(1.0),
    ),
    _case(
        "heap1g",
        "8 tables in a heap of 1 GB: who gets through, and what is spilled",
        Point("N=8", tables=8, heap="1g"),
        Goal("ours", "sortmerge", "<=", 1.0, quantity="spilled"),
        variants=(*CHAINS, "ours"),
    ),
    _case("count-star", "count(*) above the join", replace(_STRING, shape="count")),
    _case("two-columns", "two value columns of the join's 16", replace(_STRING, shape="two")),
    _case(
        "point-lookup",
        "the rows of one key in 8 tables, whose files are sorted by the key",
        Point("N=8", kind="sorted", tables=8, shape="lookup"),
        _stock_over_ours(1.0),
        Goal("sortmerge", "ours", ">=", 5.0),
        variants=(*STOCK, "ours", *BOUNDS),
    ),
    _case(
        "runtime-filter",
        "4 tables, left joins, 1 % of the first table's rows: filters made of its keys",
        Point("N=4", how="left", few=True),
        _stock_over_ours(1.0),
        Goal("ours-unfiltered", "ours", ">=", 1.5),
        variants=(*CHAINS, "ours", "ours-unfiltered"),
    ),
    Case(
        "scaling-n",
        "cost against the number of tables",
        tuple(Point(f"N={n}", tables=n, share=0.125) for n in (2, 4, 8, 16, 32)),
        variants=(*CHAINS, "ours", "floor"),
        axis="tables",
    ),
    Case(
        "scaling-rows",
        "cost of 4 tables against their rows",
        tuple(Point(f"x{share:g}", share=share) for share in (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0)),
        variants=(*CHAINS, "ours", "floor"),
        axis="rows",
    ),
    _case(
        "second-key",
        "(t0 left join t1 on a) left join t2: on a again, or on b, which has the same values",
        Point("N=3", kind="twin", tables=3),
        variants=("left-same-key", "left-second-key"),
    ),
    *_MIXED,
    SKEWED_BUCKETS,
    *SKEW_CASES,
    *TECHNIQUE_CASES,
)


def select(patterns: list[str], look: bool = False) -> list[Case]:
    """Cases by name or by pattern, in the order of the list; without one all, or a look's."""
    if not patterns:
        return [case for case in CASES if case.in_look or not look]
    for pattern in patterns:
        if not any(fnmatch(case.name, pattern) for case in CASES):
            raise ValueError(f"there is no case {pattern!r}")
    return [case for case in CASES if any(fnmatch(case.name, p) for p in patterns)]
