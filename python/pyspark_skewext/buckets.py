"""Writing bucketed tables with one file for each bucket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark_skewext._engine import engine_of
from pyspark_skewext._engine.request import Request, figures_of, plain
from pyspark_skewext._errors import value_error
from pyspark_skewext._validate import check_type, checked_columns, checked_frame
from pyspark_skewext.render.page import Page
from pyspark_skewext.render.shown import Shown
from pyspark_skewext.results import filled

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MODES = ("error", "errorifexists", "append", "overwrite", "ignore")
_MOST_BUCKETS = 2**31 - 1
_SHOWN = 20


@dataclass(frozen=True)
class Bucket:
    """What a write has put into one bucket."""

    number: int
    files: int
    rows: int
    bytes: int


@dataclass(frozen=True, repr=False)
class WrittenBuckets(Shown):
    """The result of :func:`write_bucketed`. Prints as a table.

    Attributes
    ----------
    table
        The table, with its database.
    buckets
        All buckets of the table, in their order.
    skewed, factor
        The numbers of the buckets with more than `factor` times the rows of the median one, the
        largest first (``spark.sql.adaptive.skewJoin.skewedPartitionFactor``).
    known
        Whether files and bytes are known. If not, all rows were committed, but the files could not
        be counted. Another write would write the rows twice.
    """

    table: str
    buckets: list[Bucket]
    skewed: list[int]
    factor: float
    known: bool = True
    _parts: ClassVar[Any] = {"buckets": Bucket}

    @property
    def files(self) -> int:
        """The number of files."""
        return sum(bucket.files for bucket in self.buckets)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(bucket.rows for bucket in self.buckets)

    @property
    def bytes(self) -> int:
        """The size of all files together."""
        return sum(bucket.bytes for bucket in self.buckets)

    def _page(self) -> Page:
        if not self.known:
            rows = f"{self.rows:,} rows written" if self.rows else "written"
            return Page(f"{self.table}: {rows}; files and bytes are not known")
        largest = sorted(self.buckets, key=lambda bucket: -bucket.rows)[:_SHOWN]
        numbers = [(each.number, each.files, each.rows, each.bytes) for each in largest]
        advice = []
        if len(self.buckets) > _SHOWN:
            advice.append(f"{len(self.buckets) - _SHOWN:,} more buckets have no more rows.")
        if self.skewed:
            advice.append(
                f"{len(self.skewed):,} of {len(self.buckets):,} buckets have more than "
                f"{self.factor:g} times the rows of the median one. One task reads each of them. "
                f"skew_report(df, by) finds the keys."
            )
        return Page(
            f"{self.table}: {self.rows:,} rows in {self.files:,} files, "
            f"{len(self.buckets):,} buckets",
            header=["bucket", "files", "rows", "bytes", ""],
            rows=[
                [*(f"{number:,}" for number in row), "skewed" if row[0] in self.skewed else ""]
                for row in numbers
            ],
            advice=advice,
        )


def write_bucketed(
    df: DataFrame,
    table: str,
    by: str | Sequence[str],
    buckets: int,
    *,
    sort: bool | str | Sequence[str] = True,
    mode: str = "error",
    partition_by: str | Sequence[str] | None = None,
    format: str | None = None,
    **options: Any,
) -> WrittenBuckets:
    """Write a DataFrame to a bucketed table, with one file for each bucket.

    Spark's own ``bucketBy`` writes a file for each task and bucket. This function first brings the
    rows of a bucket to one task. The table is an ordinary table of Spark: reading it, and writing
    to it, needs no extension.

    Parameters
    ----------
    df : DataFrame
        The rows.
    table : str
        Name of the table, in the session catalog.
    by : str or list of str
        The columns whose hash determines the bucket.
    buckets : int
        The number of buckets.
    sort : bool or str or list of str, default True
        The order of each file: True for the columns in `by`, False for no order.
    mode : {"error", "append", "overwrite", "ignore"}, default "error"
        What to do if the table exists, as in ``DataFrameWriter.mode``. Each append adds one file
        for each bucket.
    partition_by : str or list of str, optional
        Columns whose values become folders. Each folder has one file for each bucket.
    format, **options : str, optional
        Of ``DataFrameWriter``: the format of the files, ``compression="zstd"`` and so on.

    Returns
    -------
    WrittenBuckets
        Files, rows and bytes of every bucket.

    Raises
    ------
    AnalysisException
        If a column is missing, or the table exists and `mode` forbids the write, or the table has
        other buckets, or is of another system (Delta, Iceberg).
    PySparkTypeError
        If an argument has a wrong type.
    PySparkValueError
        If `buckets` is not positive, `mode` is unknown, or a list of columns is empty, repeats a
        column, or shares one with `partition_by`.
    QueryExecutionException
        If the table lacks rows after the write, because another write has removed them. For CSV
        and text files only a warning is logged, and `known` is False.

    Notes
    -----
    One task writes each bucket, so a bucket with most of the rows takes most of the time. Several
    appends to an existing table may run at the same time, with the committer that is Spark's
    default.

    Examples
    --------
    >>> visits = spark.range(1000).selectExpr("id % 97 AS user", "id AS visit").repartition(5)
    >>> written = skewext.write_bucketed(visits, "visits", by="user", buckets=4)
    >>> written.files, written.rows
    (4, 1000)
    >>> _ = spark.sql("DROP TABLE visits")
    """
    checked_frame(df, "df")
    by_names = checked_columns(df, by, "by")
    if isinstance(sort, bool):
        sort_names = by_names if sort else []
    else:
        sort_names = checked_columns(df, sort, "sort")
    partitions = [] if partition_by is None else checked_columns(df, partition_by, "partition_by")
    buckets = plain(buckets)
    _check(table, buckets, mode, format)
    for name in partitions:
        for what, others in (("by", by_names), ("sort", sort_names)):
            if name in others:
                raise value_error(
                    f"The column {name!r} is both in {what} and in partition_by: all rows of a "
                    f"partition have the same value of it, so it decides about no bucket."
                )
    if len(partitions) == len(df.columns):
        raise value_error("partition_by has all columns of df; one must be left for the files.")

    texts = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in options.items()
        if value is not None
    }
    request = Request(
        "write_bucketed",
        [df],
        table=table,
        by=by_names,
        buckets=buckets,
        sort=sort_names,
        mode=mode,
        partition_by=partitions,
        format=format,
        options=texts,
    )
    return filled(WrittenBuckets, figures_of(engine_of(df.sparkSession).run(request)))


def _check(table: object, buckets: object, mode: object, format: object) -> None:
    check_type(table, str, "table must be the name of a table")
    check_type(buckets, int, "buckets must be a number")
    if isinstance(buckets, int) and buckets <= 0:
        raise value_error(f"buckets must be at least 1, not {buckets}.")
    if isinstance(buckets, int) and buckets > _MOST_BUCKETS:
        raise value_error(f"buckets must be at most {_MOST_BUCKETS}, not {buckets}.")
    check_type(mode, str, "mode must be a word")
    if str(mode).lower() not in _MODES:
        raise value_error(f"mode must be one of {', '.join(_MODES)}, not {mode!r}.")
    check_type(format, (str, type(None)), "format must be a word or None")
