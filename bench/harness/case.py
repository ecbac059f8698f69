"""Cases and their points: which tables are joined, and in which ways."""

from __future__ import annotations

from dataclasses import dataclass

FULL_ROWS = 4_000_000
"""Rows of a table in a full run, whose figures are in the documentation."""

QUICK_ROWS = 100_000
"""Rows of a table in a quick run of most cases, which takes less than half an hour on two cores."""

FILES = 8
"""Files of a table. They do not depend on the cores that wrote it."""

CHAINS = ("sortmerge", "shufflehash")
STOCK = (*CHAINS, "bushy-sortmerge", "bushy-shufflehash", "union")
BOUNDS = ("floor", "scan")

SKEWED = ("hot", "hotnulls", "hotbuckets", "product", "zipf", "both")
"""Kinds of tables in which one key, or a few, have far more rows than the others."""

BUCKETED = ("bucketed", "appends", "hotbuckets")
"""Kinds of tables that are stored in buckets: one sorted file for each bucket, one for each bucket
and write, or one unsorted file for each bucket and writing task."""


@dataclass(frozen=True)
class Point:
    """One set of tables and settings. Most cases have one, a curve or a matrix has several."""

    label: str
    kind: str = "string"
    tables: int = 4
    #: Rows of a table, as a share of the rows of the run.
    share: float = 1.0
    partitions: int = 16
    #: Whether adaptive execution may coalesce partitions.
    coalesce: bool = False
    #: Whether the query keeps the rows of one key only.
    lookup: bool = False
    #: The join type, in Spark's words.
    how: str = "full"
    #: Whether the tables are joined in the opposite order, so that the skewed one comes last.
    swapped: bool = False
    #: Whether a filter keeps one in a hundred rows of the first table.
    few: bool = False
    #: Whether one map task writes the shuffle of the first table.
    one_mapper: bool = False
    #: Who splits a skewed partition: "ours"; "spark", which means that we do, too; "nobody". None:
    #: this is not checked.
    split: str | None = None
    #: One of `queries.QUERIES`, in place of a join of the tables.
    query: str | None = None
    #: Whether Spark broadcasts by its default limit, in proportion to the rows; else never.
    broadcasts: bool = False

    @property
    def bucketed(self) -> bool:
        """Whether the tables are stored in buckets."""
        return self.kind in BUCKETED

    @property
    def skewed(self) -> bool:
        """Whether a partition of the join is much larger than the others."""
        return self.kind in SKEWED

    @property
    def skewed_in_rows(self) -> bool:
        """Whether sizes in bytes hide the skew: a large output, or equal keys that compress."""
        return self.kind in ("product", "both") or (self.how in ("semi", "anti") and self.swapped)


@dataclass(frozen=True)
class Case:
    """The content of one result file."""

    name: str
    about: str
    points: tuple[Point, ...]
    variants: tuple[str, ...] = (*STOCK, "ours", "ours-plain", "duckdb", *BOUNDS)
    #: If not 0: this many times as many rounds, one right after the other, for small differences.
    repeats: int = 0
    #: Whether it is a matrix of joins and techniques: the check of an answer is the only warm-up.
    is_matrix: bool = False
    #: Whether a quick run of all cases has it.
    in_look: bool = True
