"""``skew_report``: one pass over the keys of a DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_skewext._engine import engine_of
from pyspark_skewext._engine.calls import KeyCount
from pyspark_skewext._errors import type_error, value_error
from pyspark_skewext._validate import JoinInput, checked_inputs
from pyspark_skewext.render.page import as_html, as_text
from pyspark_skewext.render.skew.advice import advise
from pyspark_skewext.render.skew.html import picture
from pyspark_skewext.render.skew.plot import draw
from pyspark_skewext.render.skew.text import key_table, summary, title
from pyspark_skewext.render.values import jsonable
from pyspark_skewext.results.skew import SkewFigures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pyspark.sql import Row

# For a smaller share the sketch would be larger than a task should hold.
_LEAST_SHARE = 0.00001
_LARGEST_SHARE = 0.5
_MOST_PARTITIONS = 1_000_000


@dataclass(frozen=True, repr=False)
class SkewReport(SkewFigures):
    """Where the skew of a key is.

    Printing it shows a table, a notebook shows a picture as well.

    Attributes
    ----------
    on
        The key columns.
    shuffle_partitions
        Into how many partitions the shuffle was taken to go.
    df, other
        How the rows lie; `other` is None if none was given.
    output
        What a join of both gives, if there are two.
    hot_keys
        The keys with the largest share of the rows of an input, or of the output, first those with
        the largest.
    slowest
        The partition whose task is expected to take longest.
    advice
        What to do, in sentences.
    """

    advice: list[str]

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        keys: Sequence[Sequence[str]],
        figures: dict[str, Any],
        hot_rows: Sequence[Row],
    ) -> SkewReport:
        """Put together what the JVM has found."""
        found = SkewFigures.of(names, keys, figures, hot_rows)
        return cls(**vars(found), advice=advise(found))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as dictionaries, lists, numbers and strings, as for JSON.

        Values of keys that JSON has no type for become strings: dates in ISO form, decimals as they
        are written, binary as hexadecimal digits.
        """
        result: dict[str, Any] = jsonable(self)
        result["slowest"]["times"] = self.slowest.times
        result["df"]["skewed_partitions"] = self.df.skewed_partitions
        if self.other is not None:
            result["other"]["skewed_partitions"] = self.other.skewed_partitions
        return result

    def plot(self, figure: Any = None) -> list[Axes]:
        """Draw the partitions and the hot keys with matplotlib.

        Parameters
        ----------
        figure : matplotlib.figure.Figure, optional
            Where to draw; by default a new figure of pyplot's.

        Returns
        -------
        list of matplotlib.axes.Axes
            The partitions' axes and those of the keys.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        return draw(self, figure)

    def __str__(self) -> str:
        table = key_table(self)
        return as_text(title(self), summary(self), "Keys with the most rows", table, self.advice)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(title(self), summary(self), picture(self), key_table(self), self.advice)


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
    inputs, names = checked_inputs(given, on)
    _check(partitions, min_share, sizes, progress)

    keys = [each.keys for each in inputs]
    frames = [each.df for each in inputs]
    count = KeyCount(frames, keys, partitions, float(min_share), sizes, progress)
    figures, hot_rows = engine_of(frames[0].sparkSession).skew_report(count)
    return SkewReport.of(names, keys, figures, hot_rows)


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
