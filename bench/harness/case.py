"""What a case is made of: points, variants by name, and goals."""

from __future__ import annotations

from dataclasses import dataclass

FULL_ROWS = 4_000_000
"""Rows of a table at the scale that the goals are for."""

QUICK_ROWS = 100_000
"""Rows of a table for a look at everything in less than half an hour on two cores."""

FILES = 8
"""Files of a table, however many cores made it."""

STOCK = ("sortmerge", "shufflehash", "bushy-sortmerge", "bushy-shufflehash", "union")
CHAINS = ("sortmerge", "shufflehash")
BOUNDS = ("floor", "scan")

SKEWED = ("hot", "hotnulls", "hotbuckets", "product", "zipf", "both")
"""Kinds of tables of which the first, or both, have a key with far more rows than others."""


BUCKETED = ("bucketed", "appends", "hotbuckets")
"""Kinds of tables stored by bucket: with one sorted file a bucket, with one a write, or with
one of each task that wrote."""


@dataclass(frozen=True)
class Point:
    """One set of tables and settings; most cases have one, a curve has several."""

    label: str
    kind: str = "string"
    tables: int = 4
    #: Rows of a table as a share of the run's.
    share: float = 1.0
    partitions: int = 16
    #: Whether adaptive execution may put small partitions together.
    coalesce: bool = False
    #: What is above the join: "all" columns, "count" of the rows, "two" columns, or "lookup", the
    #: rows of one key.
    shape: str = "all"
    #: Heap of the session; None is the run's.
    heap: str | None = None
    #: The join, as Spark names it. "full-inner": the first one full outer, all further ones inner.
    how: str = "full"
    #: Whether the tables are joined in the opposite order: the hot one comes last.
    swapped: bool = False
    #: Whether only one in a hundred rows of the first table is joined.
    few: bool = False
    #: Whether one map task writes the first table to its shuffle.
    one_mapper: bool = False
    #: Who splits a skewed partition where we may: "ours", "spark", "nobody"; None: not looked at.
    split: str | None = None
    #: One of `queries`, in place of a join of the tables.
    query: str | None = None
    #: Whether Spark broadcasts what it would by default, in proportion to the rows; else nothing.
    broadcasts: bool = False

    @property
    def bucketed(self) -> bool:
        """Whether the tables are stored by bucket."""
        return self.kind in BUCKETED

    @property
    def kinds(self) -> list[str]:
        """What each join of the chain is."""
        first, *others = self.how.split("-")
        return [first, *((others or [first]) * (self.tables - 2))]

    @property
    def skewed(self) -> bool:
        """Whether a partition of the join is much larger than the others."""
        return self.kind in SKEWED

    @property
    def skewed_in_rows(self) -> bool:
        """Whether bytes do not show it: much comes out of little, or equal keys are compressed."""
        return self.kind in ("product", "both") or (self.how in ("semi", "anti") and self.swapped)


@dataclass(frozen=True)
class Goal:
    """A bound on how two variants (or the best of two families) compare."""

    over: str
    under: str
    relation: str
    bound: float
    #: "seconds"; "spilled" or "shuffled" bytes; "overhead", round by round; "tasks": the longest
    #: one of `over` against the median one; or "every": seconds, at every point of the case.
    quantity: str = "seconds"

    def __str__(self) -> str:
        if self.quantity == "tasks":
            return f"{self.over}: longest / median task {self.relation} {self.bound:g}"
        if self.quantity == "every":
            return f"{self.over} / {self.under} {self.relation} {self.bound:g} in every row"
        what = "" if self.quantity == "seconds" else f"{self.quantity}: "
        return f"{what}{self.over} / {self.under} {self.relation} {self.bound:g}"

    def reached(self, over: float, under: float) -> bool:
        """Compare without dividing, since both may be nothing at all."""
        return over >= self.bound * under if self.relation == ">=" else over <= self.bound * under


@dataclass(frozen=True)
class Case:
    """What one result file is about."""

    name: str
    about: str
    points: tuple[Point, ...]
    variants: tuple[str, ...] = (*STOCK, "ours", "ours-plain", "ours-rows", *BOUNDS)
    goals: tuple[Goal, ...] = ()
    #: What a curve is drawn against: "tables" or "rows".
    axis: str | None = None
    #: Cases of one name that follow each other share their sessions; None: new ones for this case.
    session: str | None = None
    #: If not 0: so many times as many rounds, one right after the other, for small differences.
    repeats: int = 0
    #: Whether it is a matrix, with a row for each point: asking for the answer is the only warm-up,
    #: and what is of no consequence for the best of a row is timed once.
    is_matrix: bool = False
    #: Whether it belongs to a look at everything.
    in_look: bool = True
