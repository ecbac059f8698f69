"""The cases: which tables, which settings, and which variants take turns."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatch

from harness.case import BOUNDS, CHAINS, STOCK, Case, Point
from harness.queries import QUERIES
from harness.variants import STOCK_VARIANT, TECHNIQUES

_WITH_COMET = (*Case.variants, "comet-sortmerge", "comet-shufflehash", "comet-ours")
_OF_FILES = (*CHAINS, "ours", "scan")
_STRING = Point("N=4")


def _case(name: str, about: str, point: Point, variants: tuple[str, ...] | None = None) -> Case:
    case = Case(name, about, (point,))
    return case if variants is None else replace(case, variants=variants)


MANY_TABLES = (
    _case("n4-string-16", "4 tables, 16-character keys, 16 partitions", _STRING, _WITH_COMET),
    _case(
        "n8-string-16",
        "8 tables, 16-character keys, 16 partitions",
        Point("N=8", tables=8),
        _WITH_COMET,
    ),
    _case(
        "n4-string-200",
        "4 tables, 200 partitions, none coalesced",
        replace(_STRING, partitions=200),
    ),
    _case(
        "n4-adaptive",
        "4 tables, Spark's defaults: 200 partitions that adaptive execution coalesces",
        replace(_STRING, partitions=200, coalesce=True),
    ),
    _case("n4-long", "4 tables, long keys", Point("N=4", kind="long"), _WITH_COMET),
    _case("n8-long", "8 tables, long keys", Point("N=8", kind="long", tables=8)),
    _case("n2", "2 tables, for which stock Spark has one operator", Point("N=2", tables=2)),
    _case(
        "bucketed",
        "4 tables stored in 16 buckets on the key, one sorted file for each bucket",
        Point("N=4", kind="bucketed"),
        _OF_FILES,
    ),
    _case(
        "buckets-appends",
        "4 tables stored in 16 buckets on the key, four sorted files for each bucket",
        Point("N=4", kind="appends"),
        _OF_FILES,
    ),
    _case(
        "duplicates",
        "4 tables, 10 rows for each key in the second and the fourth",
        Point("N=4", kind="duplicates", share=0.25),
    ),
    _case(
        "payload200",
        "4 tables, one more column of 200 bytes in each",
        Point("N=4", kind="payload200", share=0.5),
    ),
    _case("threekeys", "4 tables, a key of three columns", Point("N=4", kind="threekeys")),
    _case("nulls30", "4 tables, 30 % null keys", Point("N=4", kind="nulls30")),
    _case(
        "point-lookup",
        "the rows of one key in 8 tables, whose files are sorted by the key",
        Point("N=8", kind="sorted", tables=8, lookup=True),
        (*STOCK, "ours", *BOUNDS),
    ),
    _case(
        "runtime-filter",
        "4 tables, left joins, 1 % of the first table's rows: run-time filters",
        Point("N=4", how="left", few=True),
        (*CHAINS, "ours", "ours-unfiltered"),
    ),
    Case(
        "scaling-n",
        "time against the number of tables",
        tuple(Point(f"N={n}", tables=n, share=0.125) for n in (2, 4, 8, 16, 32)),
        (*CHAINS, "ours", "floor"),
    ),
)

# A full run has 8,000,000 rows, half of them with one key, and 2,000,000 in each other table.
_HOT = Point("N=2", kind="hot", tables=2, share=2.0, split="ours")
# The partition of the null keys has 30 % of the rows. Spark calls it skewed if it is five times as
# large as the median one: with 64 partitions, but not with 16.
_NULLS = replace(_HOT, kind="hotnulls", partitions=64)
_LOOK = ("skew-full-left", "skew-three-joins", "skew-nulls-full")


def _skew(name: str, about: str, point: Point, *also: str) -> Case:
    """Spark's plan of a join, and the same query with the extension."""
    return Case(name, about, (point,), ("sortmerge", *also, "split"), in_look=name in _LOOK)


#: Who splits a join whose hot key is on the left, and one whose hot key is on the right.
_SPLIT_BY = {
    "full": ("ours", "ours"),
    "left": ("spark", "ours"),
    "right": ("ours", "spark"),
    "semi": ("spark", "ours"),
    "anti": ("spark", "ours"),
}
SKEW = (
    *(
        _skew(
            f"skew-{how}-{side}",
            f"{how} join, the hot key on the {side}",
            replace(_HOT, how=how, swapped=side == "right", split=split),
            *(("shufflehash",) if (how, side) == ("full", "left") else ()),
        )
        for how, by in _SPLIT_BY.items()
        for side, split in zip(("left", "right"), by)
    ),
    _skew(
        "skew-inner",
        "inner join, the hot key on the left",
        replace(_HOT, how="inner", split="spark"),
    ),
    Case(
        "skew-n4",
        "4 tables, full outer, the hot key in the first",
        (replace(_HOT, label="N=4", tables=4),),
        ("sortmerge", "shufflehash", "whole", "ours"),
    ),
    _skew(
        "skew-three-joins",
        "three left joins on one key in one stage, the hot key in the first table",
        replace(_HOT, label="N=4", tables=4, how="left"),
    ),
    _skew(
        "skew-one-mapper",
        "full join, one map task writes the table with the hot key",
        replace(_HOT, one_mapper=True),
    ),
    _skew("skew-nulls-full", "full join, 30 % null keys on the left, 64 partitions", _NULLS),
    _skew(
        "skew-nulls-left",
        "left join, 30 % null keys on the left, 64 partitions",
        replace(_NULLS, how="left", split="spark"),
    ),
    _skew(
        "skew-product",
        "full join, thousands of rows of one key on both sides",
        replace(_HOT, kind="product", share=0.1),
    ),
    # Nothing is shuffled, so adaptive execution knows no sizes of partitions.
    _skew(
        "skew-buckets",
        "full join of tables in 16 buckets, 8 files each, the hot key in one bucket",
        replace(_HOT, kind="hotbuckets"),
        "shufflehash",
    ),
    Case(
        "skew-none",
        "no skew: queries of two to four joins and group-bys over small tables",
        tuple(
            Point(name, kind="star", tables=5, share=0.1, coalesce=True, query=name)
            for name in QUERIES
        ),
        ("without", "skew-off", "skew-on", "skew-all"),
        repeats=5,
    ),
)

HOWS = ("full", "left", "right", "inner", "left_semi", "left_anti")
"""The rows of the matrix of techniques."""


def _matrix(name: str, kind: str, about: str, splits: dict[str, str], usual: str) -> Case:
    points = tuple(
        replace(_HOT, label=how, kind=kind, how=how, split=splits.get(how, usual), broadcasts=True)
        for how in HOWS
    )
    variants = (STOCK_VARIANT, *TECHNIQUES)
    return Case(name, about, points, variants, is_matrix=True, in_look=kind == "hot")


#: The left table is skewed: Spark splits what it can, we split the rest.
_BY_LEFT = {"full": "ours", "right": "ours"}
#: No partition is large, but the output of one is. That of a semi or an anti join is not.
_BY_OUTPUT = {"left_semi": "nobody", "left_anti": "nobody"}

MATRICES = (
    _matrix("technique-hot", "hot", "half of the left rows have one key", _BY_LEFT, "spark"),
    _matrix(
        "technique-zipf",
        "zipf",
        "the frequencies of the left keys follow Zipf's law with an exponent of 1.5",
        _BY_LEFT,
        "spark",
    ),
    _matrix(
        "technique-both",
        "both",
        "5,000 rows of one key on each side, whose product has 25,000,000 rows",
        _BY_OUTPUT,
        "ours",
    ),
)

# Not the pairs: those of 1,000 versions, or of a hot key, are too many.
_ASOF = ("asof-union", "asof-tempo", "asof", "asof-polars", "asof-duckdb")
VERSIONS = (
    Case(
        "asof",
        "the versions of 1, 4 and 8 tables at the times of a spine, 10 rows of a key",
        tuple(
            Point(f"N={n}", kind="versions", tables=n + 1, share=share)
            for n, share in ((1, 0.25), (4, 0.25), (8, 0.0625))
        ),
        ("asof-pairs", *_ASOF, "floor", "scan"),
    ),
    _case(
        "asof-feast",
        "the versions of 4 tables by Feast, 10 rows of a key",
        Point("N=4", kind="versions", tables=5, share=0.0625),
        ("asof-pairs", "asof-feast", "asof"),
    ),
    Case(
        "asof-copies",
        "the versions of 4 tables: 1,000 rows of a key, half of all rows with one key, 120 columns",
        tuple(
            Point(kind, kind=kind, tables=5, share=share)
            for kind, share in (
                ("versions1000", 0.125),
                ("hotversions", 0.125),
                ("wideversions", 0.0125),
            )
        ),
        _ASOF,
    ),
    Case(
        "asof-groups",
        "groups of 2,000 versions, and four rows of the spine for each",
        (Point("N=1", kind="versions2000", tables=2, share=5),),
        _ASOF,
    ),
    Case(
        "asof-views",
        "17,000 rows and ten tables with 120 more columns each",
        (Point("N=10", kind="wideversions", tables=11, share=0.00425),),
        ("asof-pairs", *_ASOF),
    ),
    Case(
        "asof-sizes",
        "one table of 10,000 to 10,000,000 rows beside Spark's own join, from Spark 4.3 on",
        tuple(
            Point(f"{share * 4_000_000:,.0f}", kind="versions", tables=2, share=share)
            for share in (0.0025, 0.025, 0.25, 2.5)
        ),
        ("asof-union", "asof-spark", "asof"),
    ),
    # Stock Spark compares each row of the spine with all versions of all keys.
    Case(
        "asof-merge",
        "pandas on Spark's merge_asof, 100 rows of a key",
        tuple(
            Point(f"{part:g}", kind="versions100", tables=2, share=0.003 * part)
            for part in (0.25, 0.5, 1)
        ),
        ("merge-asof", "merge-asof-ours"),
    ),
    _case(
        "latest",
        "the newest of 10 rows of a key",
        Point("N=1", kind="versions", tables=1),
        ("latest-window", "latest-max-by", "latest"),
    ),
)

CASES = (*MANY_TABLES, *SKEW, *MATRICES, *VERSIONS)


def select(patterns: list[str], look: bool = False) -> list[Case]:
    """Cases by name or pattern, in the order of the list; without one, all or a quick run's."""
    if not patterns:
        return [case for case in CASES if case.in_look or not look]
    for pattern in patterns:
        if not any(fnmatch(case.name, pattern) for case in CASES):
            raise ValueError(f"there is no case {pattern!r}")
    return [case for case in CASES if any(fnmatch(case.name, p) for p in patterns)]
