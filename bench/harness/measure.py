"""Measuring a case: answers first, then rounds in which the variants take turns.

On a machine that gets warm, throttles, or has neighbours, two figures can be compared only if
they were taken at the same time. So every round runs every variant once, each round in another
order, and ratios are made of figures of one run only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

from harness import data
from harness.balance import balance
from harness.case import Case, Point
from harness.technique_plans import AUTO, FAMILY, STOCK_VARIANT
from harness.variants import VARIANTS, Plan, Variant, expected_plan, rows_scanned, suits
from harness.workers import Pool, WorkerDiedError, WorkerError, WorkerRefusedError

LOOK_TABLES = 8
"""More inputs are left to a full run: Spark takes minutes to plan and to compile such chains."""

CLOSE_TO_BEST = 1.25
"""In a matrix, what took longer than so many times the best of its row is not timed again."""

LOOK_WITHOUT = ("union", "bushy-sortmerge", "ours-plain", "ours-rows")
"""Left to a full run: rarely the best stock plan, and then by little, or one more of ours."""


@dataclass(frozen=True)
class Options:
    """How thoroughly, and of which size."""

    cache: Path
    rows: int
    rounds: int
    #: A stock variant this much slower than the best one in the warm-up is not run again.
    drop_slow: float
    comet: bool
    #: Only these variants, where the case has them.
    only: tuple[str, ...] = ()
    #: A look at everything: what takes long and tells little is left out.
    look: bool = False
    #: Other lines of Spark: what runs in a plain session takes its turn in one of theirs, too.
    beside: tuple[str, ...] = ()

    def points(self, case: Case) -> tuple[Point, ...]:
        """The points of a case that are measured."""
        return tuple(p for p in case.points if not self.look or p.tables <= LOOK_TABLES)

    def lines(self, variant: Variant) -> tuple[str, ...]:
        """The lines of Spark that a variant runs on; "" is the one of this environment."""
        return ("", *self.beside) if variant.session == "plain" else ("",)

    def has(self, name: str) -> bool:
        """Whether a variant takes part."""
        if self.look and name in LOOK_WITHOUT and name not in self.only:
            return False
        return (self.comet or VARIANTS[name].session != "comet") and (
            not self.only or name in self.only
        )


@dataclass(eq=False)
class Figures:
    """What is known of one variant at one point."""

    variant: Variant
    #: The line of Spark, if not the one of this environment.
    line: str = ""
    seconds: list[float] = field(default_factory=list)
    warm_up: float | None = None
    rows: int | None = None
    checksum: str | None = None
    failed: str | None = None
    #: Why what was asked for is not done here, if it says so itself.
    refused: str | None = None
    dropped: bool = False
    #: Of the last run.
    facts: dict[str, Any] = field(default_factory=dict)
    #: CPU seconds of the counted runs, where they are asked for.
    cpu: list[float] = field(default_factory=list)
    #: Longest and median task of the counted runs.
    tasks: list[dict[str, float]] = field(default_factory=list)
    #: Of the fastest counted run.
    stages: list[dict[str, Any]] = field(default_factory=list)
    plan_problem: str | None = None

    @property
    def name(self) -> str:
        """The variant's, and where it runs."""
        return _on(self.variant.name, self.line)

    @property
    def runs(self) -> bool:
        """Whether it takes part in the next round."""
        return self.failed is None and self.refused is None and not self.dropped

    def as_json(self) -> dict[str, Any]:
        """Drop what does not apply."""
        found = {
            "family": self.variant.family,
            "seconds": [round(s, 3) for s in self.seconds],
            "min": round(min(self.seconds), 3) if self.seconds else None,
            "median": round(median(self.seconds), 3) if self.seconds else None,
            "warm_up": round(self.warm_up, 3) if self.warm_up is not None else None,
            "cpu_seconds": self.cpu or None,
            "balance": self._balance(),
            "rows": self.rows,
            "checksum": self.checksum,
            "failed": self.failed,
            "refused": self.refused,
            "dropped": self.dropped or None,
            "plan_problem": self.plan_problem,
            **self.facts,
            "stages": self.stages or None,
        }
        return {key: value for key, value in found.items() if value is not None}

    def _balance(self) -> dict[str, Any] | None:
        """The medians of all counted runs."""
        if not self.tasks:
            return None
        found = {key: median(run[key] for run in self.tasks) for key in self.tasks[0]}
        return {key: round(value, 3) for key, value in found.items()}


def _on(name: str, line: str) -> str:
    return f"{name} on Spark {line}" if line else name


def progress(text: str) -> None:
    """Tell where we are; the tables go to the standard output."""
    print(text, file=sys.stderr, flush=True)


def measure(case: Case, pool: Pool, options: Options) -> list[dict[str, Any]]:
    """Measure all points of a case; on several lines of Spark a point is there for each."""
    points = options.points(case)
    for point in points:
        _make_data(point, _rows(point, options), pool, options.cache, f"{case.name} {point.label}")
    return [found for point in points for found in _measure_point(case, point, pool, options)]


def _measure_point(case: Case, point: Point, pool: Pool, options: Options) -> list[dict[str, Any]]:
    rows = _rows(point, options)
    title = f"{case.name} {point.label}"
    chosen = [
        Figures(VARIANTS[name], line)
        for name in case.variants
        if suits(VARIANTS[name], point) and options.has(name)
        for line in options.lines(VARIANTS[name])
    ]
    on_lines = {
        line: [figures for figures in chosen if figures.line == line]
        for line in ("", *options.beside)
    }
    turn = _Turn(point, rows, pool, title, case.is_matrix)
    load = os.getloadavg()[0]
    for figures in chosen:
        if figures.variant.build is not None:
            turn.check(figures)
    # Backwards: what the first run pays for the session as a whole is not put down to stock Spark.
    # In a look, and where many cells are much alike, to ask for the answer warms up enough.
    for figures in reversed(chosen):
        if figures.warm_up is None or not (options.look or case.is_matrix):
            turn.time(figures, "warm-up")
    if case.repeats:
        turn.alternate(chosen, case.repeats * options.rounds)
    else:
        if not options.look:
            for on_line in on_lines.values():
                _drop_slow(on_line, options.drop_slow)
        _take_turns(turn, chosen, options.rounds, case.is_matrix)
    problems = [
        *(problem for on_line in on_lines.values() for problem in _problems(title, on_line)),
        *_different_answers(title, chosen),
    ]
    return [
        {
            **asdict(point),
            "label": _on(point.label, line),
            "rows": rows,
            "load_before": round(load, 2),
            "variants": {figures.variant.name: figures.as_json() for figures in on_line},
            # Each is told once.
            "problems": [] if line else problems,
        }
        for line, on_line in on_lines.items()
    ]


def _rows(point: Point, options: Options) -> int:
    return max(1, round(options.rows * point.share))


def _take_turns(
    turn: _Turn, chosen: Sequence[Figures], rounds: int, is_matrix: bool = False
) -> None:
    for number in range(rounds):
        running = [figures for figures in chosen if figures.runs]
        if is_matrix and number > 0:
            running = _of_consequence(running)
        shift = number % max(1, len(running))
        for figures in running[shift:] + running[:shift]:
            turn.time(figures, f"round {number + 1}/{rounds}")


def _of_consequence(running: Sequence[Figures]) -> list[Figures]:
    """What others are compared with, what chooses among them, and what may be the best."""
    best: dict[str, float] = {}
    for figures in running:
        least = min(figures.seconds, default=inf)
        best[figures.line] = min(least, best.get(figures.line, inf))
    return [
        figures
        for figures in running
        if figures.variant.name in (STOCK_VARIANT, AUTO)
        or (figures.seconds and min(figures.seconds) <= CLOSE_TO_BEST * best[figures.line])
    ]


class _Turn:
    """Runs one variant once, at one point."""

    def __init__(
        self, point: Point, rows: int, pool: Pool, title: str, in_matrix: bool = False
    ) -> None:
        self._point = point
        self._arguments: dict[str, Any] = {"point": asdict(point), "rows": rows}
        self._pool = pool
        self._title = title
        self._in_matrix = in_matrix

    def check(self, figures: Figures) -> None:
        answer = self._ask("check", figures, "answer")
        if answer is not None:
            figures.rows, figures.checksum = answer["rows"], answer["checksum"]
            figures.warm_up = answer["seconds"]

    def time(self, figures: Figures, label: str) -> None:
        if not figures.runs:
            return
        answer = self._ask("run", figures, label)
        if answer is None:
            return
        seconds = answer.pop("seconds")
        stages = answer.pop("stages")
        if label == "warm-up":
            figures.warm_up = seconds
        else:
            figures.seconds.append(seconds)
            # A technique that shuffles nothing has its join in a stage that reads files.
            found = balance(stages, with_scans=self._in_matrix)
            if found is not None:
                figures.tasks.append(found)
            if seconds == min(figures.seconds) and not self._in_matrix:
                figures.stages = stages
        figures.facts = answer
        wanted = expected_plan(figures.variant, self._point, answer.get("technique"))
        if wanted is not None:
            figures.plan_problem = _compare(wanted, answer["operators"]) or figures.plan_problem
        told = answer.get("technique", figures.variant.name)
        if figures.variant.name not in (told, AUTO):
            figures.plan_problem = f"the join says that it is done by {told}"
        allowed = rows_scanned(figures.variant, self._point, self._arguments["rows"])
        if allowed is not None:
            read = sum(stage["rows_in"] for stage in stages if not stage["parents"])
            figures.facts["rows_scanned"] = read
            if read not in allowed:
                figures.plan_problem = f"{read:,} rows were read, not {allowed}"

    def alternate(self, chosen: Sequence[Figures], rounds: int) -> None:
        """Time all of them, in turns too short to look at each."""
        names = [figures.variant.name for figures in chosen if figures.runs]
        where = (chosen[0].variant.session, self._point.heap)
        arguments = {**self._arguments, "variants": names, "rounds": rounds}
        answer = self._pool.ask(*where, "alternate", **arguments)
        for figures in chosen:
            figures.seconds = answer["each"].get(figures.variant.name, [])
            figures.cpu = answer["cpu"].get(figures.variant.name, [])
        progress(f"{self._title:24} {rounds} rounds  {answer['seconds']:27.2f} s")

    def _ask(self, command: str, figures: Figures, label: str) -> dict[str, Any] | None:
        where = (figures.variant.session, self._point.heap)
        arguments = {"variant": figures.variant.name, **self._arguments}
        try:
            answer = self._pool.ask(*where, command, line=figures.line, **arguments)
        except WorkerRefusedError as error:
            figures.refused = str(error)
            progress(f"{self._title:24} {label:10} {figures.name:18} refuses: {error}")
            return None
        except WorkerError as error:
            figures.failed = f"{label}: {error}"
            progress(f"{self._title:24} {label:10} {figures.name:18} failed: {error}")
            if not isinstance(error, WorkerDiedError):
                self._pool.replace(*where, line=figures.line)
            return None
        progress(f"{self._title:24} {label:10} {figures.name:31} {answer['seconds']:8.2f} s")
        return answer


def _make_data(point: Point, rows: int, pool: Pool, cache: Path, title: str) -> None:
    missing = data.missing(cache, point.kind, rows, point.tables)
    if not missing:
        return
    # There may be no memory for one more session.
    pool.close()
    for table in missing:
        progress(f"{title:24} making table {table} of {point.kind}-{rows}")
        pool.ask("data", None, "generate", kind=point.kind, rows=rows, table=table)
    pool.replace("data", None)


def _drop_slow(chosen: Sequence[Figures], factor: float) -> None:
    """Spare stock variants that will not be the best. One or two are there for their own sake."""
    timed = {f: f.warm_up for f in chosen if f.variant.family == "stock" and f.warm_up is not None}
    if not factor or len(timed) <= 2:
        return
    best = min(timed.values())
    for figures, seconds in timed.items():
        if seconds > factor * best:
            figures.dropped = True
            progress(f"{'':24} {figures.name} will not be the best stock plan: dropped")


def _compare(wanted: Mapping[str, int | range], found: Plan) -> str | None:
    allowed = {name: (n, found.get(name, 0)) for name, n in wanted.items()}
    # A stock plan must not have our operator, ours must not have another join.
    for name, n in found.items():
        if name.endswith("Join") and name not in wanted:
            allowed[name] = (0, n)
    wrong = [
        f"{b} {name} for {a}"
        for name, (a, b) in allowed.items()
        if b not in (a if isinstance(a, range) else (a,))
    ]
    return f"plan has {', '.join(wrong)}" if wrong else None


def _without_sketches(operators: Plan) -> dict[str, int]:
    """The plan's operators but those that only count keys: part of what switching skew on costs."""
    return {name: n for name, n in operators.items() if name != "KeySketch"}


def _problems(title: str, chosen: Sequence[Figures]) -> list[str]:
    """Whatever makes figures worthless, and failures of ours; a peer may fail."""
    problems = [f"{title}: {f.name}: {f.plan_problem}" for f in chosen if f.plan_problem]
    problems += [
        f"{title}: {f.name} failed: {f.failed}"
        for f in chosen
        if f.failed and f.variant.family not in ("stock", "comet", "bound")
    ]
    problems += [
        f"{title}: {f.name} refuses: {f.refused}"
        for f in chosen
        if f.refused and (f.variant.family != FAMILY or f.variant.name == AUTO)
    ]
    unplanned = [f for f in chosen if f.variant.plan is None and f.facts]
    problems += [
        f"{title}: {f.name} and {unplanned[0].name} have different plans"
        for f in unplanned[1:]
        if _without_sketches(f.facts["operators"])
        != _without_sketches(unplanned[0].facts["operators"])
    ]
    return problems


def _different_answers(title: str, chosen: Sequence[Figures]) -> list[str]:
    """On all lines of Spark the answer is one."""
    answers = [f for f in chosen if f.checksum is not None]
    return [
        f"{title}: {f.name} and {answers[0].name} have different answers:"
        f" {f.rows} and {answers[0].rows} rows"
        for f in answers[1:]
        if (f.rows, f.checksum) != (answers[0].rows, answers[0].checksum)
    ]
