"""``explain``: how the joins of a DataFrame are planned, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark_skewext import _jvm
from pyspark_skewext._engine import engine_of
from pyspark_skewext._errors import type_error, type_name
from pyspark_skewext.render.explanation import Listing
from pyspark_skewext.render.shown import Shown
from pyspark_skewext.results import filled
from pyspark_skewext.results.explanation import ExplainedJoin, ExplainedScan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, repr=False)
class Explanation(Shown):
    """The result of :func:`explain`: sentences about the query, its joins, its bucketed scans.

    It prints as text, and shows a page in notebooks.
    """

    notes: list[str]
    joins: list[ExplainedJoin]
    scans: list[ExplainedScan]
    _entries: list[list[str]]
    _parts: ClassVar[Any] = {"joins": ExplainedJoin, "scans": ExplainedScan}

    def _page(self) -> Listing:
        return Listing([(title, lines) for title, *lines in self._entries])


def explain(df: DataFrame) -> Explanation:
    """Explain the joins of a DataFrame and the scans of its bucketed tables.

    For each join: whether it became one operator, or the reason why not; the conditions on the
    rows of each input; and how the operator works. After the DataFrame has run, also the skewed
    partitions that were split, or the reason why none was. For each scan of a bucketed table: the
    buckets that it reads.

    Parameters
    ----------
    df : DataFrame
        Any DataFrame, with joins of any kind. It is planned as by ``df.explain()``, and not run.

    Returns
    -------
    Explanation
        Shows itself in notebooks and at the prompt; in a script, print it.

    Raises
    ------
    AnalysisException
        If Spark cannot plan the query, for example a streaming one.
    PySparkTypeError
        If `df` is not a DataFrame.
    PySparkRuntimeError
        If the jar in the session has another version, or a Spark Connect server has no jar.

    Notes
    -----
    Skew is known only after the DataFrame itself has run, by ``collect()`` or ``toPandas()``, and
    never with Spark Connect: other calls, and the server, plan the query anew.

    Examples
    --------
    >>> phones = spark.createDataFrame([(1, "red"), (2, "blue")], "id int, colour string")
    >>> bills = spark.createDataFrame([(2, 9.5), (3, 4.0)], "id int, amount double")
    >>> joined = skewext.multi_full_join(phones, bills, on="id").where("id > 1")
    >>> explanation = skewext.explain(joined)
    >>> explanation.joins[0].inputs[0].filters
    ['id IS NOT NULL', 'id > 1']
    >>> explanation
    Join 1: full outer join of 2 inputs on [id]
      asked for: one operator
      input 0  optional  Scan ExistingRDD [id]  filter: id IS NOT NULL, id > 1
      input 1  optional  Scan ExistingRDD [id]  filter: id IS NOT NULL, id > 1
      grouping: hash; exchanges: 2 (columnar 2); key sampling: 2
      null keys: none in the result
      skew: not run: this plan has not ended; count(), show(), commands and Connect run others
    """
    if not _jvm.is_a(df, "DataFrame"):
        raise type_error(f"Expected a DataFrame, not {type_name(df)}.")
    figures = engine_of(df.sparkSession).explain(df)
    return filled(Explanation, figures, _entries=figures["entries"])
