"""``skew_report``: one pass over the keys of a DataFrame."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pyspark_skewext._errors import type_error, value_error
from pyspark_skewext._jvm import api_of, java_list
from pyspark_skewext._validate import checked_inputs
from pyspark_skewext.multijoin import JoinInput
from pyspark_skewext.report.result import SkewReport
from pyspark_skewext.report.watch import watched

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

# For a smaller share the sketch would be larger than a task should hold.
_LEAST_SHARE = 0.00001
_LARGEST_SHARE = 0.5
_MOST_PARTITIONS = 1_000_000


def skew_report(
    df: JoinInput,
    on: str | Sequence[str],
    other: JoinInput | None = None,
    *,
    partitions: int | None = None,
    min_share: float = 0.001,
    sizes: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> SkewReport:
    """Find the keys that make a shuffle by `on` uneven, and what to do about them.

    Reads the key columns once, shuffles nothing, and holds sketches of a fixed size. The
    partitions are counted exactly, with Spark's own hash; hot keys come with a lower and an upper
    bound of their rows.

    Parameters
    ----------
    df : DataFrame or (DataFrame, str or list of str)
        The data. The tuple names the key columns where they differ from `on`.
    on : str or list of str
        Names of the key columns.
    other : DataFrame or (DataFrame, str or list of str), optional
        What `df` is to be joined with. It is read once as well, and the report tells how many
        rows the join would give, and of which keys.
    partitions : int, optional
        Into how many partitions the shuffle goes; by default as many as Spark would take in this
        session (``spark.sql.shuffle.partitions``).
    min_share : float, optional
        Keys with more than this share of the rows are found for sure. A smaller share takes more
        memory: some 3.5 / `min_share` keys in every task, at the default 3,072.
    sizes : bool, optional
        Whether to measure how large the rows are, for which all columns have to be read. If not,
        a row's size is guessed by the types of its columns.
    progress : callable, optional
        Called now and then with the tasks done and all tasks known so far, from another thread.
        Spark's own progress bar, where it is on, shows in any case.

    Returns
    -------
    SkewReport
        Prints as a table; has a picture in notebooks.

    Raises
    ------
    AnalysisException
        If an input lacks a key column, or cannot be joined by it.
    PySparkTypeError, PySparkValueError
        If an argument is not what it should be.
    PySparkRuntimeError
        If the session does not have the extension.

    See Also
    --------
    multi_full_join : a join whose skewed partitions are split.

    Notes
    -----
    Rows with a NULL in a key column match nothing, and are counted apart. Keys of more than 4,096
    bytes are counted in their partitions, but not by themselves.

    Examples
    --------
    >>> visits = spark.range(1000).selectExpr("if(id % 4 = 0, 7, id) AS user", "id AS visit")
    >>> report = skewext.skew_report(visits, "user", partitions=8)
    >>> report.hot_keys[0].key, report.hot_keys[0].rows
    (7, Bounds(low=251, high=251))
    >>> report.slowest.partition == report.hot_keys[0].partition
    True
    """
    given = [df] if other is None else [df, other]
    inputs, names = checked_inputs(given, on, least=1)
    _check(partitions, min_share, sizes, progress)

    spark = inputs[0].df.sparkSession
    api = api_of(spark)
    jvm: Any = spark._jvm
    with watched(spark, progress):
        seen = api.skewReport(
            java_list(jvm, [each.df._jdf for each in inputs]),
            java_list(jvm, [java_list(jvm, each.keys) for each in inputs]),
            partitions,
            float(min_share),
            sizes,
        )
    return SkewReport.of(
        names,
        [each.keys for each in inputs],
        json.loads(seen.figures()),
        _rows(spark, seen.hotKeys(), names),
    )


def _check(partitions: object, min_share: object, sizes: object, progress: object) -> None:
    if partitions is not None:
        if not isinstance(partitions, int) or isinstance(partitions, bool):
            raise type_error(f"partitions must be a number, not {type(partitions).__name__}.")
        if not 1 <= partitions <= _MOST_PARTITIONS:
            raise value_error(
                f"partitions must be between 1 and {_MOST_PARTITIONS:,}, not {partitions}."
            )
    if not isinstance(min_share, (int, float)) or isinstance(min_share, bool):
        raise type_error(f"min_share must be a number, not {type(min_share).__name__}.")
    if not _LEAST_SHARE <= min_share <= _LARGEST_SHARE:
        raise value_error(
            f"min_share must be between {_LEAST_SHARE:f} and {_LARGEST_SHARE}, not {min_share}."
        )
    if not isinstance(sizes, bool):
        raise type_error(f"sizes must be True or False, not {type(sizes).__name__}.")
    if progress is not None and not callable(progress):
        raise type_error(
            f"progress must be a function of two numbers or None, not {type(progress).__name__}."
        )


def _rows(spark: SparkSession, frame: Any, names: Sequence[str]) -> list[Row]:
    """Fetch the hot keys; what Python has no type for comes as text, as Spark would show it."""
    from pyspark.sql import DataFrame
    from pyspark.sql.functions import col

    found = DataFrame(frame, spark)
    # A column of the key may have any name, also that of another one here.
    found = found.toDF(*(f"c{position}" for position in range(len(found.columns))))
    try:
        return found.collect()
    except (ValueError, OverflowError, TypeError, NotImplementedError):
        keys = [col(name).cast("string").alias(name) for name in found.columns[: len(names)]]
        return found.select(*keys, *found.columns[len(names) :]).collect()
