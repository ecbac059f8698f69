"""Runs queries in turns, each way in a session of its own, and compares the answers.

Only one session works at a time. Each round runs each way once, one right after the other, in
another order each time, so that a ratio is one of figures of the same minute.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any

from harness import engines, question_worker
from harness.measure import progress
from harness.pool import Pool, SessionLostError
from harness.questions import Question, Way

Json = dict[str, Any]

#: By how much sums of floating columns may differ, as a share of the sum of their absolute values.
_TOLERANCE = 1e-9


@dataclass(eq=False)
class _Ran:
    """The figures of one way."""

    way: Way
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    answer: Json = field(default_factory=dict)
    failed: str | None = None
    #: Of the last run.
    facts: Json = field(default_factory=dict)

    def as_json(self) -> Json:
        """All that is known."""
        found = {
            "seconds": self.seconds,
            "median": round(median(self.seconds), 3) if self.seconds else None,
            "cpu_seconds": self.cpu or None,
            "rows": self.answer.get("rows"),
            "checksum": self.answer.get("checksum"),
            "failed": self.failed,
            **self.facts,
        }
        return {key: value for key, value in found.items() if value is not None}


class Turns:
    """Measures queries by the same ways."""

    def __init__(self, pool: Pool, ways: Sequence[Way], rounds: int, warm_up: bool) -> None:
        self._pool = pool
        self._ways = ways
        self._rounds = rounds
        self._warm_up = warm_up

    def measure(self, question: Question, to_check: Callable[[str], str]) -> Json:
        """The answers to `to_check` of the query, then the times of the query."""
        load = os.getloadavg()[0]
        ran = [_Ran(way) for way in self._ways if way.name in question.ways]
        for each in ran:
            sql = to_check(question.text(each.way))
            found = self._ask("answer", question, each, sql, "answer")
            each.answer = found or {}
        problems = []
        for number in range(0 if self._warm_up else 1, self._rounds + 1):
            shift = number % len(ran)
            for each in ran[shift:] + ran[:shift]:
                problem = self._time(question, each, number)
                if problem is not None and problem not in problems:
                    problems.append(problem)
        problems += [f"{each.way.name} failed: {each.failed}" for each in ran if each.failed]
        problems += _differences(ran)
        return {
            "about": question.about,
            "pairs": question.pairs,
            "smaller": question.smaller,
            "load_before": round(load, 2),
            "ways": {each.way.name: each.as_json() for each in ran},
            "problems": [f"{question.name}: {problem}" for problem in problems],
        }

    def _time(self, question: Question, ran: _Ran, number: int) -> str | None:
        label = f"round {number}/{self._rounds}" if number else "warm-up"
        sql = question.text(ran.way)
        found = self._ask("run", question, ran, sql, label)
        if found is None:
            return None
        seconds, cpu = found.pop("seconds"), found.pop("cpu_seconds")
        if number:
            ran.seconds.append(seconds)
            ran.cpu.append(cpu)
        ran.facts = found
        problem = question.problem(ran.way, found["joins"])
        return problem and f"{ran.way.name}: {problem}"

    def _ask(self, name: str, question: Question, ran: _Ran, sql: str, label: str) -> Json | None:
        if ran.failed:
            return None
        title = f"{question.name:24} {label:10} {ran.way.name:10}"
        session, conf = ran.way.session, question.settings(ran.way)
        engine = ran.way.engine
        command: Any = getattr(engines if engine else question_worker, name)
        if engine:
            command = partial(command, engine)
        try:
            found: Json = self._pool.ask(
                session, command, sql, question.data, conf, question.analyzed
            )
        except SessionLostError as error:
            found = {"failed": str(error)}
        wrong = found.get("failed") or found.get("refused")
        if wrong is None:
            progress(f"{title} {found['seconds']:8.2f} s")
            return found
        ran.failed = f"{label}: {wrong}"
        progress(f"{title} {ran.failed}")
        if "failed" in found:
            self._pool.replace(session)
        return None


def _differences(ran: Sequence[_Ran]) -> list[str]:
    answers = [each for each in ran if each.answer]
    return [
        f"{each.way.name} and {answers[0].way.name} give different answers: "
        f"{each.answer['rows']}, {answers[0].answer['rows']} rows"
        for each in answers[1:]
        if not same_answer(each.answer, answers[0].answer)
    ]


def same_answer(one: Json, other: Json) -> bool:
    """Whether two answers are the same, but for the last digits of floating columns."""
    if (one["rows"], one["checksum"]) != (other["rows"], other["checksum"]):
        return False
    pairs = list(zip(one["floats"], other["floats"]))
    # A sum, and the sum of the absolute values.
    return all(
        _close(*total, scale=absolute[0]) for total, absolute in zip(pairs[::2], pairs[1::2])
    )


def _close(one: float | None, other: float | None, scale: float | None) -> bool:
    if one is None or other is None or math.isnan(one) or math.isnan(other):
        return str(one) == str(other)
    return one == other or abs(one - other) <= _TOLERANCE * (scale or 0.0)
