"""What a run of queries has found."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from random_sql.coverage import Coverage
from random_sql.engines import Answer


@dataclass
class Found:
    """Counts of a run."""

    compared: int = 0
    #: Those that stock Spark has run, too.
    stock: int = 0
    #: Queries with at least one join of ours, and how many inputs all of these had.
    rewritten: int = 0
    inputs: Counter[int] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    #: Queries in which partitions were split.
    split: int = 0
    rows: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    failures: list[str] = field(default_factory=list)
    #: The message of the last query that failed; it may not fail again.
    error: str = ""
    coverage: Coverage = field(default_factory=Coverage)

    def add(self, answer: Answer, rows: int) -> None:
        """Count an answer that was compared."""
        self.compared += 1
        self.rows += rows
        self.rewritten += answer.rewritten
        self.inputs.update(answer.joins)
        self.split += answer.split

    @contextmanager
    def timed(self, who: str) -> Iterator[None]:
        """Count the time of a block."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[who] += time.perf_counter() - begin

    def to_dict(self, spark: str, seed: int) -> dict[str, Any]:
        """The same for JSON."""
        return {
            "spark": [spark],
            "seeds": [seed],
            "queries": self.compared + sum(self.skipped.values()),
            "compared": self.compared,
            "stock": self.stock,
            "rewritten": self.rewritten,
            "split": self.split,
            "rows": self.rows,
            "wrong": len(self.failures),
            "skipped": dict(self.skipped),
            "inputs": {str(n): times for n, times in sorted(self.inputs.items())},
            "seconds": {who: round(took, 1) for who, took in self.seconds.items()},
            "coverage": self.coverage.to_dict(),
        }

    def __str__(self) -> str:
        many = ", ".join(f"{n} inputs: {times}" for n, times in sorted(self.inputs.items()))
        left = ", ".join(f"{times} {why}" for why, times in self.skipped.most_common()) or "none"
        spent = ", ".join(f"{who} {took:.0f} s" for who, took in self.seconds.items())
        return (
            f"{self.compared} queries compared, {self.rows} rows; rewritten: {self.rewritten} "
            f"({many or 'none'}), split: {self.split}; left out: {left}; {spent}; "
            f"{len(self.failures)} wrong"
        )
