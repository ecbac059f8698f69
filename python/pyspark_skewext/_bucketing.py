"""Bucketed tables by public API alone, for Spark Connect: nothing of it needs the extension."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from statistics import median_high
from typing import TYPE_CHECKING, Any

from pyspark_skewext._connect import is_old_client
from pyspark_skewext._errors import analysis_error, execution_error

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# Those of Spark's own files.
_FORMATS = ("parquet", "orc", "avro", "csv", "json", "text")
_SESSION_CATALOG = "spark_catalog"
_FACTOR = "spark.sql.adaptive.skewJoin.skewedPartitionFactor"

# Spark names files part-<task>-<id of the write>_<bucket>; other committers may do otherwise.
_FILE_NAME = r"part-\d+-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})_(\d+)(?:\..*)?"
# Writes whose files a call has taken for its own.
_claimed: dict[str, object] = {}

_PART = r"`(?:[^`]|``)+`|[^`.]+"


def write_by_api(
    df: DataFrame,
    table: str,
    by: Sequence[str],
    buckets: int,
    sort: Sequence[str],
    mode: str,
    partition_by: Sequence[str],
    format: str | None,
    options: Mapping[str, str],
) -> dict[str, Any]:
    """Write the table, and say in the words of the JVM what is in its buckets."""
    spark = df.sparkSession
    name = _qualified(spark, table)
    before = _Table.of(spark, name)
    factor = float(str(spark.conf.get(_FACTOR)))
    written = {"table": ".".join(name), "factor": factor, "known": True}
    if before is not None:
        _check_format(table, before.provider)
        if mode == "ignore":
            return {**written, **_counted(buckets, [], factor)}
    default = str(spark.conf.get("spark.sql.sources.default"))
    appended = before if mode == "append" else None
    # Spark wants to be told what the table is made of, unless that is its default.
    chosen = format or (default if appended is None else appended.provider)
    _check_format(table, chosen)
    files_before = set() if appended is None else set(spark.table(_quoted(name)).inputFiles())

    from pyspark.sql.functions import count, lit

    rows: Any = _together(df, by, buckets, partition_by, appended)
    seen: Any = None
    # The client of Spark 3.5 cannot count what it writes.
    if not is_old_client():
        seen = import_module("pyspark.sql.connect.observation").Observation()
        rows = rows.observe(seen, count(lit(1)).alias("rows"))
    writer = rows.write.format(chosen).mode(mode).options(**options).bucketBy(buckets, *by)
    if sort:
        writer = writer.sortBy(*sort)
    if partition_by:
        writer = writer.partitionBy(*partition_by)
    writer.saveAsTable(_quoted(name))
    total: int | None = None
    try:
        total = None if seen is None else int(seen.get["rows"])
        own = _written(spark, name, files_before, total)
        if isinstance(own, _Missing):
            # The server may have listed the files for another write, just before this one was done.
            spark.catalog.refreshTable(_quoted(name))
            own = _written(spark, name, files_before, total)
    except Exception:
        # Whoever takes an error for a write that failed writes all rows a second time.
        own = None
    if isinstance(own, _Missing):
        raise execution_error(own.message(".".join(name), buckets))
    if own is None:
        return {**written, "known": False, "buckets": [], "skewed": [], "unplaced": total or 0}
    return {**written, **_counted(buckets, own, factor)}


class _Missing:
    """Rows that the tasks of a write have counted, and the files of the table do not have."""

    def __init__(self, rows: int, writes: Iterable[list[tuple[int, int, int]]]) -> None:
        # Of files that may be those of this write.
        parts = [files for files in writes if sum(file[1] for file in files) < rows]
        self.rows = rows
        self._most = max(parts, key=lambda files: sum(file[1] for file in files), default=[])
        self._least = "at least " if len(parts) > 1 else ""

    def message(self, table: str, buckets: int) -> str:
        """Say how many rows are missing, and which buckets have none."""
        found = sum(file[1] for file in self._most)
        empty = sorted(set(range(buckets)) - {file[0] for file in self._most})
        none = f", which have none in the buckets {str(empty[:20])[1:-1]}" if empty else ""
        rest = " The other rows are in the table: remove them before you write again."
        return (
            f"The write to {table} lost rows: its tasks wrote {self.rows:,} rows, and {self._least}"
            f"{self.rows - found:,} of them are not in the table's files{none}. Another write to "
            f"the table may have removed them.{rest if found else ''}"
        )


class _Table:
    """A table that is there."""

    def __init__(self, provider: str, types: Mapping[str, str], fields: Mapping[str, Any]) -> None:
        self.provider = provider
        self._types, self._fields = types, fields

    @classmethod
    def of(cls, spark: SparkSession, name: Sequence[str]) -> _Table | None:
        if not spark.catalog.tableExists(_quoted(name)):
            return None
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {_quoted(name)}").collect()
        details = max(i for i, row in enumerate(rows) if row[0].startswith("# Detailed Table"))
        provider = [row[1] for row in rows[details:] if row[0] == "Provider"]
        fields = spark.table(_quoted(name)).schema.fields
        # Char and varchar are nowhere but here.
        types = {row[0]: row[1] for row in rows[: len(fields)]}
        return cls(provider[0] if provider else "", types, {f.name: f.dataType for f in fields})

    def stored(self, name: str, column: Column, own: Any) -> Column:
        """A column as the table keeps it: of that, Spark computes the bucket."""
        from pyspark.sql.functions import lit, rpad

        known = next((field for field in self._fields if field.lower() == name.lower()), None)
        if known is None:
            return column
        text = re.fullmatch(r"(char|varchar)\((\d+)\)", self._types[known])
        if text is not None:
            length = int(text.group(2))
            if text.group(1) == "char":
                return rpad(column.cast("string"), length, " ")
            return column.cast("string").substr(lit(1), lit(length))
        wanted = self._fields[known]
        return column if wanted == own else column.cast(wanted)


def _together(
    df: DataFrame,
    by: Sequence[str],
    buckets: int,
    partition_by: Sequence[str],
    appended: _Table | None,
) -> DataFrame:
    """The rows of each file in one task."""
    from pyspark.sql.functions import hash, lit, pmod, when
    from pyspark.sql.types import StringType

    types = {field.name: field.dataType for field in df.schema.fields}

    def stored(name: str) -> Column:
        column = df[_quoted([name])]
        return column if appended is None else appended.stored(name, column, types[name])

    def of_folder(name: str) -> Column:
        value = stored(name)
        # Spark writes an empty string as null.
        return when(value != "", value) if isinstance(types[name], StringType) else value

    values = [stored(name) for name in by]
    if not partition_by:
        # Task i has bucket i. A null adds nothing to the hash; it keeps Spark from leaving out the
        # shuffle where the rows come from a join by the same columns: of that, adaptive execution
        # may split partitions.
        return df.repartition(buckets, *values, lit(None).cast("int"))
    # More tasks than buckets, and each opens the files of some partitions only.
    folders = [of_folder(name) for name in partition_by]
    return df.repartition(*folders, pmod(hash(*values), lit(buckets)))


def _written(
    spark: SparkSession, name: Sequence[str], before: set[str], rows: int | None
) -> list[tuple[int, int, int]] | _Missing | None:
    """Bucket, rows and bytes of each file of this write; None where it is not sure which they are.

    Others may have written to the table meanwhile. A file's name has an id of the write, which
    Spark tells nobody. So of several writes ours is the one that has as many rows.
    """
    added = [file for file in spark.table(_quoted(name)).inputFiles() if file not in before]
    parsed = [re.fullmatch(_FILE_NAME, file.rsplit("/", 1)[-1]) for file in added]
    writes: dict[str, list[tuple[int, int, int]]] = {
        match.group(1): [] for match in parsed if match is not None
    }
    if writes:
        counted = spark.sql(
            "SELECT _metadata.file_name, _metadata.file_size, count(1) "
            f"FROM {_quoted(name)} WHERE _metadata.file_name RLIKE '{'|'.join(sorted(writes))}' "
            "GROUP BY _metadata.file_path, _metadata.file_name, _metadata.file_size"
        ).collect()
        for file, size, file_rows in counted:
            match = re.fullmatch(_FILE_NAME, file)
            if match is not None and match.group(1) in writes:
                writes[match.group(1)].append((int(match.group(2)), int(file_rows), int(size)))
    if rows is None:
        return None if len(writes) > 1 or None in parsed else next(iter(writes.values()), [])
    own = [write for write, files in writes.items() if sum(file[1] for file in files) == rows]
    # Another call may have taken the files for its own, of a write that has as many rows.
    free, call = [write for write in own if write not in _claimed], object()
    for write in free:
        if _claimed.setdefault(write, call) is call:
            return writes[write] if len(free) == 1 else None
    if None in parsed:
        return None
    found = [files for write, files in writes.items() if write not in own]
    return _Missing(rows, found) if rows else []


def _counted(buckets: int, files: Iterable[tuple[int, int, int]], factor: float) -> dict[str, Any]:
    counts = [{"number": i, "files": 0, "rows": 0, "bytes": 0} for i in range(buckets)]
    for number, rows, size in files:
        bucket = counts[number]
        bucket["files"] += 1
        bucket["rows"] += rows
        bucket["bytes"] += size
    usual = median_high(bucket["rows"] for bucket in counts)
    skewed = [bucket for bucket in counts if bucket["rows"] > factor * max(1, usual)]
    skewed.sort(key=lambda bucket: -bucket["rows"])
    return {"buckets": counts, "skewed": [bucket["number"] for bucket in skewed]}


def _check_format(table: str, provider: str) -> None:
    if provider.lower() not in _FORMATS:
        raise analysis_error(
            f"{table!r} cannot be written by bucket: buckets are made of files of Spark's own "
            f"formats ({', '.join(_FORMATS)}), and not of {provider!r}."
        )


def _qualified(spark: SparkSession, table: str) -> list[str]:
    """The name with its catalog and database, of which only Spark's own has such tables."""
    if re.fullmatch(rf"(?:{_PART})(?:\.(?:{_PART}))*", table) is None:
        raise analysis_error(f"{table!r} is no name of a table.")
    parts = [
        part[1:-1].replace("``", "`") if part.startswith("`") else part
        for part in re.findall(_PART, table)
    ]
    in_session_catalog = spark.catalog.currentCatalog() == _SESSION_CATALOG
    if len(parts) == 3:
        in_session_catalog = parts[0] == _SESSION_CATALOG
    elif len(parts) == 2:
        other = spark.conf.get(f"spark.sql.catalog.{parts[0]}", None)
        in_session_catalog = in_session_catalog and other is None
    if not in_session_catalog or len(parts) > 3:
        raise analysis_error(
            f"{table!r} is not in the session catalog ({_SESSION_CATALOG}); Spark's own bucketed "
            f"tables are only there."
        )
    database = parts[-2] if len(parts) > 1 else spark.catalog.currentDatabase()
    if "/" in parts[-1]:
        raise analysis_error(
            f"{table!r} cannot be written by bucket: it is not a table of Spark's own catalog."
        )
    return [_SESSION_CATALOG, database, parts[-1]]


def _quoted(name: Sequence[str]) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in name)
