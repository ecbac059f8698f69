"""``query_report``: the tasks of a query that has run."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_skewext import _jvm
from pyspark_skewext._engine import active_engine, engine_of
from pyspark_skewext._engine.request import plain
from pyspark_skewext._errors import value_error
from pyspark_skewext._validate import check_progress, check_type
from pyspark_skewext.render.page import Page
from pyspark_skewext.render.query import page_of
from pyspark_skewext.render.query_gains import JoinGain, command_of, gains_of, gains_shown
from pyspark_skewext.render.shown import Shown
from pyspark_skewext.results.query import QueryFigures

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, repr=False)
class QueryReport(Shown, QueryFigures):
    """How uneven the tasks of a query were in its joins, and what joins of Spark's would gain.

    Prints as a table.

    Attributes
    ----------
    query, description, seconds, failure
        The query in Spark's UI: its number and description, its time, and why it failed.
    join_count, stages
        The number of joins in its plan, and the stages with joins.
    other_seconds
        The sum of the times of the tasks in its other stages.
    explained
        A line for each join that the extension has planned, or left to Spark for a reason.
    advice
        Changes that make the query faster, as sentences: the same as in Spark's UI.
    settings
        Its settings, as far as the advice depends on them.
    queries
        All known queries of the application, or of its event log.
    join_work, stage_work
        The work of Spark's own joins, and of the stages that run them or write their inputs.
    application, application_id, spark_version, event_log
        The application, and the path of its event log if the report is of one.
    """

    _derived = ("gains", "command")

    @property
    def gains(self) -> list[JoinGain]:
        """Joins of Spark's that would take less time with the extension: estimates."""
        return gains_of(self)

    @property
    def command(self) -> str:
        """The options of ``spark-submit`` that add the extension."""
        return command_of(self)

    def _page(self) -> Page:
        return page_of(self, gains_shown(self, self.gains), self.command)


def query_report(
    query: DataFrame | int | None = None,
    *,
    event_log: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> QueryReport:
    """Report how uneven the tasks of a query were in its joins, with advice.

    The query has run in this application or, with `event_log`, in another one, which may be
    without the extension. For each stage with a join, the report compares the slowest task with the
    median: time, input and spill. For joins of stock Spark it estimates the time that the extension
    would save.

    Parameters
    ----------
    query : DataFrame or int, optional
        A DataFrame whose own query has run, or the number of a query in Spark's UI. The default is
        the last query of the application with a join, and in an event log the longest one.
    event_log : str or path, optional
        The event log of an application (``spark.eventLog.enabled``): a file, or the folder of a
        rolled log, compressed or not, on any file system of Spark.
    progress : callable, optional
        Receives the bytes read and all bytes of an event log, from another thread.

    Returns
    -------
    QueryReport
        Prints as a table, and has a picture in notebooks.

    Raises
    ------
    AnalysisException
        If there is no such query, if it still runs, if Spark has forgotten its tasks, or if the
        event log is not readable or has no query.
    PySparkRuntimeError
        If there is no session.

    See Also
    --------
    explain : how the joins of a DataFrame are planned.
    skew_report : the keys that make tasks uneven.

    Notes
    -----
    Spark keeps the last 1,000 queries and stages of the running application, even without its UI
    (``spark.sql.ui.retainedExecutions``, ``spark.ui.retainedStages``).

    Examples
    --------
    >>> rows = spark.range(100).join(spark.range(50, 150), "id", "full").collect()
    >>> report = skewext.query_report()
    >>> [join.operator for stage in report.stages for join in stage.joins]
    ['BuildProbeJoin']
    """
    query = plain(query)
    _check(query, event_log, progress)
    if query is None or isinstance(query, int):
        engine = active_engine()
    else:
        engine = engine_of(query.sparkSession)
    path = None if event_log is None else os.fspath(event_log)
    return QueryReport.of({**engine.query_report(query, path, progress), "event_log": path})


def _check(query: object, event_log: object, progress: object) -> None:
    is_frame = _jvm.is_a(query, "DataFrame")
    if not is_frame:
        kinds = (int, type(None))
        check_type(query, kinds, "query must be a DataFrame, the number of a query or None")
    if isinstance(query, int) and not 0 <= query < 2**63:
        raise value_error(f"query must be the number of a query, not {query}.")
    check_type(event_log, (str, os.PathLike, type(None)), "event_log must be a path")
    if event_log is not None and is_frame:
        raise value_error(
            "A DataFrame is not in an event log: give the number of the query, or nothing."
        )
    check_progress(progress)
