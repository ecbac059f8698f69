"""Bucketed tables: writing them with one file a bucket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from pyspark_skewext._engine import engine_of
from pyspark_skewext._engine.calls import BucketedWrite
from pyspark_skewext._errors import type_error, value_error
from pyspark_skewext._validate import checked_columns, checked_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MODES = ("error", "errorifexists", "append", "overwrite", "ignore")
_SHOWN = 20


@dataclass(frozen=True)
class Bucket:
    """What a write has put into one bucket."""

    number: int
    files: int
    rows: int
    bytes: int


@dataclass(frozen=True)
class WrittenBuckets:
    """What :func:`write_bucketed` has written. Prints as a table."""

    #: The table, with its database.
    table: str
    #: All buckets of the table, in their order.
    buckets: list[Bucket]
    #: The numbers of the buckets with far more rows than others, that with the most first.
    skewed: list[int]
    #: How many times the median of the rows is far more
    #: (``spark.sql.adaptive.skewJoin.skewedPartitionFactor``).
    factor: float
    #: Whether files and bytes are known. If not, all rows are there, and counting the files failed:
    #: writing once more would double the rows.
    known: bool = True

    @property
    def files(self) -> int:
        """How many files were written."""
        return sum(bucket.files for bucket in self.buckets)

    @property
    def rows(self) -> int:
        """How many rows were written, as the tasks that wrote them have counted."""
        return sum(bucket.rows for bucket in self.buckets)

    @property
    def bytes(self) -> int:
        """How large the files are together."""
        return sum(bucket.bytes for bucket in self.buckets)

    def to_dict(self) -> dict[str, Any]:
        """Give the same as lists, dicts, strings and numbers."""
        return asdict(self)

    def __str__(self) -> str:
        if not self.known:
            return self._title()
        lines = [self._title(), "", " ".join(f"{name:>13}" for name in _HEADER)]
        lines += [" ".join(f"{cell:>13}" for cell in row) for row in self._cells()]
        return "\n".join([*lines, "", *self._remarks()]).rstrip()

    def _repr_html_(self) -> str:
        header = "".join(f"<th>{name}</th>" for name in _HEADER)
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self._cells()
        )
        remarks = "".join(f"<p>{escape(remark)}</p>" for remark in self._remarks())
        return f"<div><h4>{escape(self._title())}</h4><table>{header}{rows}</table>{remarks}</div>"

    def _title(self) -> str:
        if not self.known:
            rows = f"{self.rows:,} rows written" if self.rows else "written"
            return f"{self.table}: {rows}; counting the files failed, files and bytes are not known"
        return (
            f"{self.table}: {self.rows:,} rows in {self.files:,} files, "
            f"{len(self.buckets):,} buckets"
        )

    def _cells(self) -> list[list[str]]:
        """The largest buckets; those that are skewed are among them."""
        largest = sorted(self.buckets, key=lambda bucket: -bucket.rows)[:_SHOWN]
        return [
            [
                f"{bucket.number:,}",
                f"{bucket.files:,}",
                f"{bucket.rows:,}",
                f"{bucket.bytes:,}",
                "skewed" if bucket.number in self.skewed else "",
            ]
            for bucket in largest
        ]

    def _remarks(self) -> list[str]:
        remarks = []
        if len(self.buckets) > _SHOWN:
            remarks.append(f"{len(self.buckets) - _SHOWN:,} more buckets have no more rows.")
        if self.skewed:
            remarks.append(
                f"{len(self.skewed):,} of {len(self.buckets):,} buckets have more than "
                f"{self.factor:g} times the rows of the median one: each is read by one task. "
                f"skew_report(df, by) tells the keys."
            )
        return remarks


_HEADER = ("bucket", "files", "rows", "bytes", "")


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
    """Write a DataFrame to a bucketed table, with one file a bucket.

    Spark's own ``bucketBy`` writes a file for each bucket that a task has rows of, which is tasks
    times buckets of them. Here the rows of a bucket are brought to one task first. The table is an
    ordinary one of Spark, which can be read, and written to, without this package.

    Parameters
    ----------
    df : DataFrame
        The rows.
    table : str
        Name of the table, in the session catalog.
    by : str or list of str
        The columns whose hash decides about the bucket.
    buckets : int
        How many buckets the table has.
    sort : bool or str or list of str, default True
        What each file is sorted by: True for the columns in `by`, False for nothing.
    mode : {"error", "append", "overwrite", "ignore"}, default "error"
        What to do if the table is there, as in ``DataFrameWriter.mode``. Each append adds one file
        a bucket.
    partition_by : str or list of str, optional
        Columns whose values become folders. There is one file a bucket in each.
    format : str, optional
        Format of the files; by default ``spark.sql.sources.default``, or that of the table.
    **options
        Options of ``DataFrameWriter``: ``compression="zstd"``, ``path=...`` and so on.

    Returns
    -------
    WrittenBuckets
        Files, rows and bytes of every bucket. If counting the files fails after the write, `known`
        is False.

    Raises
    ------
    AnalysisException
        If a column is missing, or the table is there and `mode` does not allow for it, or has
        other buckets, or is not one of Spark's own files (Delta, Iceberg).
    QueryExecutionException
        If the table lacks rows after the write, as another write has removed them. The message
        tells how many, and of which buckets.
    PySparkTypeError, PySparkValueError
        If an argument is not what it should be.
    PySparkRuntimeError
        If the session does not have the extension.

    Notes
    -----
    Several appends to a table may run at the same time. Each has a staging folder of its own,
    unless another committer than Spark's default is configured.

    With Spark Connect the server needs the extension.

    A bucket is written by one task, so a bucket with most of the rows takes most of the time, here
    and whenever the table is read by bucket.

    Examples
    --------
    >>> visits = spark.range(1000).selectExpr("id % 97 AS user", "id AS visit").repartition(5)
    >>> written = skewext.write_bucketed(visits, "visits", by="user", buckets=4)
    >>> written.files, written.rows
    (4, 1000)
    >>> skewext.write_bucketed(visits, "visits", by="user", buckets=4, mode="append").files
    4
    >>> _ = spark.sql("DROP TABLE visits")
    """
    checked_frame(df, "df")
    by_names = checked_columns(df, by, "by")
    if isinstance(sort, bool):
        sort_names = by_names if sort else []
    else:
        sort_names = checked_columns(df, sort, "sort")
    partitions = [] if partition_by is None else checked_columns(df, partition_by, "partition_by")
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
    call = BucketedWrite(df, table, by_names, buckets, sort_names, mode, partitions, format, texts)
    written = engine_of(df.sparkSession).write_bucketed(call)
    return WrittenBuckets(
        written["table"],
        [Bucket(**bucket) for bucket in written["buckets"]],
        written["skewed"],
        written["factor"],
        written["known"],
    )


def _check(table: object, buckets: object, mode: object, format: object) -> None:
    if not isinstance(table, str):
        raise type_error(f"table must be the name of a table, not {type(table).__name__}.")
    if not isinstance(buckets, int) or isinstance(buckets, bool):
        raise type_error(f"buckets must be a number, not {type(buckets).__name__}.")
    if buckets <= 0:
        raise value_error(f"buckets must be at least 1, not {buckets}.")
    if not isinstance(mode, str):
        raise type_error(f"mode must be a word, not {type(mode).__name__}.")
    if mode not in _MODES:
        raise value_error(f"mode must be one of {', '.join(_MODES)}, not {mode!r}.")
    if format is not None and not isinstance(format, str):
        raise type_error(f"format must be a word or None, not {type(format).__name__}.")
