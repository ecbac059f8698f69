"""``skew_report``: one pass over the keys of a DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark_skewext._engine import engine_of
from pyspark_skewext._engine.request import LARGEST_SHARE, LEAST_SHARE, Request, counted, plain
from pyspark_skewext._errors import type_error, value_error
from pyspark_skewext._validate import JoinInput, check_progress, check_type, latest_inputs
from pyspark_skewext.render.page import Page
from pyspark_skewext.render.shown import Shown
from pyspark_skewext.render.skew import page_of
from pyspark_skewext.render.skew_advice import advise
from pyspark_skewext.results.skew import SkewFigures

_MOST_PARTITIONS = 1_000_000


@dataclass(frozen=True, repr=False)
class SkewReport(Shown, SkewFigures):
    """The skew of a key. Prints as a table.

    Attributes
    ----------
    on, shuffle_partitions
        The key columns, and the number of partitions of the shuffle.
    df, other, output
        The distribution of the rows of both, and of a join of them; None without `other`.
    hot_keys
        The keys with the largest share of the rows of an input or of the output, in this order.
    slowest
        The partition with the slowest expected task.
    settings
        The settings of the session that concern skew.
    """

    _derived = ("advice",)

    @property
    def advice(self) -> list[str]:
        """Changes that make the tasks even, as sentences."""
        return advise(self)

    def _page(self) -> Page:
        return page_of(self, self.advice)


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
    """Find the keys that make a shuffle by `on` uneven, with advice.

    The report reads the key columns once, without a shuffle, into sketches of a fixed size. It
    counts the partitions exactly, with Spark's own hash. Hot keys have a lower and an upper bound
    of their rows.

    Parameters
    ----------
    df : DataFrame or (DataFrame, str or list of str)
        The data. The tuple names the key columns if their names differ from `on`.
        In place of any DataFrame, :func:`latest` takes its newest row of each key.
    on : str or list of str
        Names of the key columns.
    other : DataFrame or (DataFrame, str or list of str), optional
        The other side of a join with `df`. The report reads it once as well, and estimates the
        output of the join and of its hot keys.
    partitions : int, optional
        The number of partitions of the shuffle; by default that of this session
        (``spark.sql.shuffle.partitions``).
    min_share : float, optional
        The report finds all keys with more than this share of the rows. A smaller share takes more
        memory: some 3.5 / `min_share` keys in each task, 3,072 by default.
    sizes : bool, optional
        Whether to measure rows, which reads all columns. By default the report estimates the size
        of a row by the types of its columns.
    progress : callable, optional
        Receives the tasks done and all tasks known so far, from another thread.

    Returns
    -------
    SkewReport
        Prints as a table, and has a picture in notebooks.

    Raises
    ------
    AnalysisException
        If an input lacks a key column, or the keys cannot be compared.
    PySparkTypeError
        If an argument has a wrong type.
    PySparkValueError
        If a number is out of its range, or `on` is empty or repeats a column.

    See Also
    --------
    skew_join : a join by a technique against skew.

    Notes
    -----
    Rows with a NULL in a key column match nothing; the report counts them apart. Keys of more than
    4,096 bytes count only for their partition.

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
    inputs, names = latest_inputs(given, on)
    partitions, min_share = plain(partitions), plain(min_share)
    _check(partitions, min_share, sizes, progress)

    keys = [each.keys for each in inputs]
    frames = [each.df for each in inputs]
    request = Request(
        "skew_report",
        frames,
        keys=keys,
        partitions=partitions,
        min_share=float(min_share),
        sizes=sizes,
    )
    figures, hot_rows = counted(engine_of(frames[0].sparkSession).run(request, progress))
    return SkewReport.of(names, keys, figures, hot_rows)


def _check(partitions: object, min_share: object, sizes: object, progress: object) -> None:
    check_type(partitions, (int, type(None)), "partitions must be a number")
    if isinstance(partitions, int) and not 1 <= partitions <= _MOST_PARTITIONS:
        raise value_error(
            f"partitions must be between 1 and {_MOST_PARTITIONS:,}, not {partitions}."
        )
    check_type(min_share, (int, float), "min_share must be a number")
    if isinstance(min_share, (int, float)) and not LEAST_SHARE <= min_share <= LARGEST_SHARE:
        raise value_error(
            f"min_share must be between {LEAST_SHARE:f} and {LARGEST_SHARE}, not {min_share}."
        )
    if not isinstance(sizes, bool):
        raise type_error(f"sizes must be True or False, not {type(sizes).__name__}.")
    check_progress(progress)
