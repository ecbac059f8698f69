"""The page of a report on a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark_skewext.render.chart import BLUE, MOST_BARS, ORANGE, Chart
from pyspark_skewext.render.page import Page
from pyspark_skewext.render.values import bytes_shown, counted, joins_shown, seconds, times

if TYPE_CHECKING:
    from pyspark_skewext.results.query import JoinStage, QueryFigures

# The longest description, and the most stages in the picture.
_DESCRIPTION, MOST_STAGES = 60, 4
_HEADER = ["stage", "tasks", "slowest", "median", "times", "it read", "median", "its rows"]


def page_of(report: QueryFigures, gains: Sequence[str], command: str) -> Page:
    """Put the page together."""
    description = " ".join(report.description.split())
    if len(description) > _DESCRIPTION:
        description = description[: _DESCRIPTION - 3] + "..."
    slowest = sorted(report.stages, key=lambda stage: stage.slowest.seconds, reverse=True)
    return Page(
        f"Query {report.query}{_source(report)} {description}",
        _facts(report),
        "Stages with joins",
        [*_HEADER, "spilled", "on disk", "rows out"],
        [_row(stage) for stage in report.stages],
        report.advice,
        [chart_of(s) for s in sorted(slowest[:MOST_STAGES], key=lambda stage: stage.stage)],
        gains,
        command,
    )


def _source(report: QueryFigures) -> str:
    """Name the application of an event log, and the log."""
    if report.event_log is None:
        return ","
    application = f" of {report.application} ({report.application_id})"
    return f"{application if report.application else ''} in {report.event_log}:"


def _facts(report: QueryFigures) -> list[tuple[str, str]]:
    facts = [("took", seconds(report.seconds))]
    if report.failure is not None:
        lines = report.failure.strip().splitlines()
        facts.append(("failed", lines[0] if lines else "without a message"))
    facts.append(("joins", f"{report.join_count}"))
    spent = sum(stage.total.seconds for stage in report.stages)
    facts.append(
        ("tasks", f"{seconds(spent)} with joins, {seconds(report.other_seconds)} without, in all")
    )
    lines = report.explained or ["it has planned none of the joins"]
    facts += [("" if position else "skewext", line) for position, line in enumerate(lines)]
    return facts


def _row(stage: JoinStage) -> list[str]:
    rows = None if stage.prepares else stage.joins[0].output_rows
    return [
        f"{stage.stage}: {joins_shown(stage)}",
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


def chart_of(stage: JoinStage) -> Chart:
    """A bar for each task, the slowest first; of very many tasks one for each few."""
    tasks = len(stage.task_seconds)
    step = -(-tasks // MOST_BARS) or 1
    starts = range(0, tasks, step)
    bars = [(stage.task_seconds[start], start < stage.uneven_tasks) for start in starts]
    return Chart(
        f"stage {stage.stage}: {joins_shown(stage)}, {counted(stage.tasks, 'task')}: slowest "
        f"{seconds(stage.slowest.seconds)}, median {seconds(stage.median.seconds)}",
        [f"task {start + 1:,} of {tasks:,} by time" for start in starts],
        [(0.0, time) if uneven else (time, 0.0) for time, uneven in bars],
        seconds,
        "tasks, the slowest first",
        colors=(BLUE, ORANGE),
        names=("even tasks", "uneven tasks"),
        median=stage.median.seconds,
    )
