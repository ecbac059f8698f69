"""The coverage of a run: queries by kind, in several dimensions, and their outcomes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

#: The dimensions, in the order in which they are printed.
SOURCES, NESTED, SURROUNDINGS, SINKS, SETTINGS, FUNCTIONS, OPERATORS = DIMENSIONS = (
    "source",
    "nested value",
    "surroundings",
    "sink",
    "setting",
    "function",
    "operator",
)


@dataclass
class Tally:
    """Queries of one kind: all, with a join of ours, with a split one, with a wrong answer."""

    queries: int = 0
    rewritten: int = 0
    split: int = 0
    wrong: int = 0

    def add(self, other: Tally) -> None:
        """Count those of another one as well."""
        self.queries += other.queries
        self.rewritten += other.rewritten
        self.split += other.split
        self.wrong += other.wrong


@dataclass
class Coverage:
    """Tallies by dimension and kind."""

    tallies: dict[str, dict[str, Tally]] = field(default_factory=dict)

    def count(self, kinds: Mapping[str, Iterable[str]], tally: Tally) -> None:
        """Count a query, once for each of its kinds."""
        for dimension, names in kinds.items():
            for name in sorted(set(names)):
                self.tallies.setdefault(dimension, {}).setdefault(name, Tally()).add(tally)

    def add(self, other: Coverage) -> None:
        """Count those of another run as well."""
        for dimension, tallies in other.tallies.items():
            for name, tally in tallies.items():
                self.count({dimension: [name]}, tally)

    def kinds(self, dimension: str) -> set[str]:
        """The kinds that were in a query with a join of ours."""
        tallies = self.tallies.get(dimension, {})
        return {name for name, tally in tallies.items() if tally.rewritten}

    def rows(self) -> list[tuple[str, str, int, int, int, int]]:
        """Dimension, kind, queries, rewritten, split, wrong."""
        return [
            (dimension, name, tally.queries, tally.rewritten, tally.split, tally.wrong)
            for dimension in DIMENSIONS
            for name, tally in sorted(self.tallies.get(dimension, {}).items())
        ]

    def table(self) -> str:
        """The same in Markdown."""
        head = [("dimension", "kind", "queries", "rewritten", "split", "wrong")]
        cells = [tuple(map(_shown, line)) for line in (*head, *self.rows())]
        wide = [max(len(line[i]) for line in cells) for i in range(6)]
        rule = tuple("-" * width for width in wide)
        rule = (*rule[:2], *(f"{each[:-1]}:" for each in rule[2:]))
        lines = [cells[0], rule, *cells[1:]]
        return "\n".join(
            f"| {' | '.join(_aligned(cell, wide[i], i) for i, cell in enumerate(line))} |"
            for line in lines
        )

    def to_dict(self) -> dict[str, Any]:
        """The same for JSON."""
        return {
            dimension: {name: asdict(tally) for name, tally in tallies.items()}
            for dimension, tallies in self.tallies.items()
        }

    @staticmethod
    def from_dict(found: Mapping[str, Mapping[str, Mapping[str, int]]]) -> Coverage:
        """From what `to_dict` gave."""
        return Coverage(
            {
                dimension: {name: Tally(**tally) for name, tally in tallies.items()}
                for dimension, tallies in found.items()
            }
        )


def _shown(cell: object) -> str:
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def _aligned(cell: str, width: int, place: int) -> str:
    return cell.ljust(width) if place < 2 else cell.rjust(width)


def merged(files: Iterable[Path]) -> dict[str, Any]:
    """The results of several runs as one, of one line of Spark or of several."""
    runs = [json.loads(file.read_text()) for file in files]
    coverage = Coverage()
    for run in runs:
        coverage.add(Coverage.from_dict(run["coverage"]))
    numbers = ("queries", "compared", "stock", "rewritten", "split", "rows", "wrong")
    return {
        "spark": sorted({line for run in runs for line in run["spark"]}),
        "seeds": [seed for run in runs for seed in run["seeds"]],
        **{name: sum(run[name] for run in runs) for name in numbers},
        "skipped": _sums(run["skipped"] for run in runs),
        "inputs": _sums(run["inputs"] for run in runs),
        "seconds": _sums(run["seconds"] for run in runs),
        "coverage": coverage.to_dict(),
    }


def _sums(counts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for each in counts:
        for name, number in each.items():
            total[name] = total.get(name, 0) + number
    return total
