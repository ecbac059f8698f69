"""``query_report``: what became of a query's joins, task by task."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_skewext import _jvm
from pyspark_skewext._engine import active_engine, engine_of
from pyspark_skewext._errors import type_error, value_error
from pyspark_skewext.render.page import as_html, as_text
from pyspark_skewext.render.query.advice import advise
from pyspark_skewext.render.query.html import picture
from pyspark_skewext.render.query.plot import draw
from pyspark_skewext.render.query.text import stage_table, summary, title
from pyspark_skewext.render.values import jsonable
from pyspark_skewext.results.query import QueryFigures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pyspark.sql import DataFrame


@dataclass(frozen=True, repr=False)
class QueryReport(QueryFigures):
    """How the tasks of a query were in its joins.

    Printing it shows a table, a notebook shows a picture as well.

    Attributes
    ----------
    query, description
        The number of the query in Spark's UI, and what stands there beside it.
    seconds
        How long it took.
    failure
        Why it failed; None if it did not.
    join_count
        How many joins its plan has.
    stages
        The stages that ran joins, in the order of their numbers.
    other_seconds
        How long the tasks of its other stages ran, added up.
    rules
        The rules of the extension that can be seen in its plan.
    advice
        What to do, in sentences.
    settings
        What the query was run with, as far as advice depends on it.
    queries
        All queries that are known, in the application or in its event log.
    """

    advice: list[str]

    @classmethod
    def of(cls, figures: dict[str, Any]) -> QueryReport:
        """Put together what the JVM has found."""
        found = QueryFigures.of(figures)
        return cls(**vars(found), advice=advise(found))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as dictionaries, lists, numbers and strings, as for JSON."""
        result: dict[str, Any] = jsonable(self)
        for each, stage in zip(result["stages"], self.stages):
            each["times"] = stage.times
        return result

    def plot(self, figure: Any = None) -> list[Axes]:
        """Draw the tasks of each stage with matplotlib.

        Parameters
        ----------
        figure : matplotlib.figure.Figure, optional
            Where to draw; by default a new figure of pyplot's.

        Returns
        -------
        list of matplotlib.axes.Axes
            One for each stage, those with the slowest tasks.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        return draw(self, figure)

    def __str__(self) -> str:
        table = stage_table(self)
        return as_text(title(self), summary(self), "Stages with joins", table, self.advice)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(title(self), summary(self), picture(self), stage_table(self), self.advice)


def query_report(
    query: DataFrame | int | None = None,
    *,
    event_log: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> QueryReport:
    """Tell how uneven the tasks of a query were in its joins, and what to do about it.

    Looks at a query that has run, in this application or, with `event_log`, in any other, which
    need not have had the extension. For each stage with a join: the slowest task against the
    median, what it read, and what was spilled; and which rules of the extension the plan shows.
    Nothing is run.

    Parameters
    ----------
    query : DataFrame or int, optional
        A DataFrame that has been run itself, or the number of a query in Spark's UI. Without one
        the report is about the last query of the application that has a join; of an event log,
        about the longest.
    event_log : str or path, optional
        The event log of an application (``spark.eventLog.enabled``): a file, or the folder of a log
        that was rolled, compressed or not, wherever Spark can read.
    progress : callable, optional
        While an event log is read, called now and then with the bytes read and all that there are
        to read, from another thread.

    Returns
    -------
    QueryReport
        Prints as a table; has a picture in notebooks.

    Raises
    ------
    AnalysisException
        If there is no such query, if it has not come to its end, if nothing is known of its tasks,
        or if the event log cannot be read or has no query.
    PySparkTypeError, PySparkValueError
        If an argument is not what it should be.
    PySparkRuntimeError
        If no session is active, or it does not have the extension.

    See Also
    --------
    explain : what became of the joins of a DataFrame, and why.
    skew_report : which keys make tasks uneven.

    Notes
    -----
    Of the running application, Spark remembers the last 1,000 queries and stages
    (``spark.sql.ui.retainedExecutions``, ``spark.ui.retainedStages``), also where its UI is off.

    Examples
    --------
    >>> rows = spark.range(100).join(spark.range(50, 150), "id", "full").collect()
    >>> report = skewext.query_report()
    >>> [join.operator for stage in report.stages for join in stage.joins]
    ['SortMergeJoin']
    >>> report.stages[0].slowest.shuffle_rows <= report.stages[0].total.shuffle_rows
    True
    """
    _check(query, event_log, progress)
    if query is None or isinstance(query, int):
        engine = active_engine()
    else:
        engine = engine_of(query.sparkSession)
    path = None if event_log is None else os.fspath(event_log)
    return QueryReport.of(engine.query_report(query, path, progress))


def _check(query: object, event_log: object, progress: object) -> None:
    is_frame = _jvm.is_a(query, "DataFrame")
    if isinstance(query, bool) or not (is_frame or query is None or isinstance(query, int)):
        raise type_error(
            f"query must be a DataFrame, the number of a query or None, not {type(query).__name__}."
        )
    if isinstance(query, int) and query < 0:
        raise value_error(f"query must be the number of a query, not {query}.")
    if event_log is not None:
        if not isinstance(event_log, (str, os.PathLike)):
            raise type_error(f"event_log must be a path, not {type(event_log).__name__}.")
        if is_frame:
            raise value_error(
                "A DataFrame is not in an event log: give the number of the query, or nothing."
            )
    if progress is not None and not callable(progress):
        raise type_error(
            f"progress must be a function of two numbers or None, not {type(progress).__name__}."
        )
