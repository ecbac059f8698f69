"""What became of the joins of a DataFrame, and why."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from pyspark_skewext import _jvm
from pyspark_skewext._engine import engine_of
from pyspark_skewext._errors import type_error
from pyspark_skewext.render.explanation import as_html, as_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Explanation:
    """What :func:`explain` says: text where it is printed, a table in notebooks.

    Examples
    --------
    >>> one = spark.range(3)
    >>> explanation = skewext.explain(skewext.multi_full_join(one, one, one, on="id"))
    >>> explanation.joins[0]["origin"]["status"]
    'asked for'
    """

    def __init__(self, content: dict[str, Any]) -> None:
        self._content = content

    @property
    def notes(self) -> list[str]:
        """What holds for the whole query, as that the extension is switched off."""
        return list(self._content["notes"])

    @property
    def joins(self) -> list[dict[str, Any]]:
        """The joins, as in :meth:`to_dict`."""
        joins: list[dict[str, Any]] = self.to_dict()["joins"]
        return joins

    @property
    def scans(self) -> list[dict[str, Any]]:
        """The scans of bucketed tables, as in :meth:`to_dict`."""
        scans: list[dict[str, Any]] = self.to_dict()["scans"]
        return scans

    def to_dict(self) -> dict[str, Any]:
        """Give the same as lists, dicts, strings and numbers.

        Returns
        -------
        dict
            ``notes``, ``joins`` and ``scans``. A join has its ``number``, the ``place`` in the
            query that it is in, a ``title``, the ``operators`` that do it, its ``origin`` (a
            ``status``, which is "asked for", "rewritten", "not rewritten" or "switched off", and
            why), its ``inputs``, its ``execution`` where the operator is ours, and the ``skew`` of
            its operators. A scan of a bucketed table has its ``source``, the columns that the
            buckets are made ``by``, how many ``buckets`` there are, how many are ``read``, in how
            many ``partitions`` if by the bucket, and ``why``.
        """
        return copy.deepcopy(self._content)

    def __str__(self) -> str:
        return as_text(self._content)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self._content)


def explain(df: DataFrame) -> Explanation:
    """Say what became of the joins of a DataFrame and of its bucketed tables, and why.

    For each join of the query: whether it became one operator, or the reason why not; which
    conditions were pushed into which input; how the operator works; and, once the DataFrame has
    been run, which skewed partitions were split, or why none was. For each scan of a bucketed
    table: which buckets are read.

    Nothing is run. The query is planned, if it has not been, as ``df.explain()`` does.

    Parameters
    ----------
    df : DataFrame
        Any DataFrame, with joins of whatever kind.

    Returns
    -------
    Explanation
        Shows itself in notebooks and at the prompt; in a script, print it.

    Raises
    ------
    AnalysisException
        If Spark cannot plan the query, as with a streaming DataFrame.
    PySparkTypeError
        If `df` is no DataFrame.
    PySparkRuntimeError
        If the jar in the session is of another version, or a Spark Connect server has none.

    Notes
    -----
    Skew is known of a DataFrame that was run itself, by ``collect()``, ``toPandas()`` or
    ``foreach()``: ``count()``, ``show()`` and ``write`` run queries of their own, which do not tell
    it what became of them. Of a Spark Connect DataFrame it is never known, as the server plans it
    anew each time.

    Examples
    --------
    >>> phones = spark.createDataFrame([(1, "red"), (2, "blue")], "id int, colour string")
    >>> bills = spark.createDataFrame([(2, 9.5), (3, 4.0)], "id int, amount double")
    >>> joined = skewext.multi_full_join(phones, bills, on="id").where("id > 1")
    >>> skewext.explain(joined)
    Join 1: full outer join of 2 inputs on [id]
      asked for: one operator
      input 0  optional  Scan ExistingRDD [id]  pushed: id IS NOT NULL, id > 1
      input 1  optional  Scan ExistingRDD [id]  pushed: id IS NOT NULL, id > 1
      grouping: hash; exchanges: 2 (bulk rows 2); key sampling: 2
      null keys: none in the result
      skew: not run: the query has not been run
    """
    if not _jvm.is_a(df, "DataFrame"):
        raise type_error(f"Expected a DataFrame, not {type(df).__name__}.")
    return Explanation(engine_of(df.sparkSession).explain(df))
