"""What the report on a query says, as text and in notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark_skewext.render.values import bytes_shown, seconds, times

if TYPE_CHECKING:
    from pyspark_skewext.results.query import JoinStage, QueryFigures, RanJoin

_DESCRIPTION = 60


def title(report: QueryFigures) -> str:
    """Say what the report is about."""
    description = " ".join(report.description.split())
    if len(description) > _DESCRIPTION:
        description = description[: _DESCRIPTION - 3] + "..."
    return f"Query {report.query}, {description}"


def summary(report: QueryFigures) -> list[tuple[str, str]]:
    """What is known besides single stages, as names and sentences."""
    facts = [("took", seconds(report.seconds))]
    if report.failure is not None:
        lines = report.failure.strip().splitlines()
        facts.append(("failed", lines[0] if lines else "without a message"))
    facts.append(("joins", f"{report.join_count}"))
    spent = sum(stage.total.seconds for stage in report.stages)
    facts.append(
        ("tasks", f"{seconds(spent)} with joins, {seconds(report.other_seconds)} without, in all")
    )
    for position, (rule, text) in enumerate(report.rules):
        facts.append(("" if position else "rules", f"{rule}: {text}"))
    if not report.rules:
        facts.append(("rules", "none of the extension's is seen in the plan"))
    return facts


def stage_table(report: QueryFigures) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Header and rows of the table of stages."""
    header = ["stage", "tasks", "slowest", "median", "times", "it read", "median", "its rows"]
    header += ["spilled", "on disk", "rows out"]
    return header, [_row(stage) for stage in report.stages]


def _row(stage: JoinStage) -> list[str]:
    rows = None if stage.prepares else stage.joins[0].output_rows
    return [
        stage_shown(stage),
        f"{stage.tasks:,}",
        seconds(stage.slowest.seconds),
        seconds(stage.median.seconds),
        "" if stage.times is None else times(stage.times).split()[0],
        bytes_shown(stage.slowest.read_bytes),
        bytes_shown(stage.median.read_bytes),
        f"{stage.slowest.read_rows:,.0f}",
        bytes_shown(stage.total.memory_spilled),
        bytes_shown(stage.total.disk_spilled),
        "" if rows is None else f"{rows:,}",
    ]


def stage_shown(stage: JoinStage) -> str:
    """Name a stage by its number and what it joins."""
    return f"{stage.stage}: {joins_shown(stage)}"


def joins_shown(stage: JoinStage) -> str:
    """Name the joins of a stage."""
    names = [join_shown(join) for join in stage.joins[:2]]
    more = f" and {len(stage.joins) - 2} more" if len(stage.joins) > 2 else ""
    return f"{'before ' if stage.prepares else ''}{', '.join(names)}{more}"


def join_shown(join: RanJoin) -> str:
    """Name a join by its operator and its key."""
    return f"{join.operator} on {', '.join(join.keys)}" if join.keys else join.operator
