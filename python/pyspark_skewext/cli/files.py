"""Input and output files of the command line."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS = ("parquet", "csv", "json", "orc")

_SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".orc": "orc",
}
_COMPRESSION = {".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate"}


@dataclass
class InputFile:
    """An input as the user gave it: where it is, its key columns if named, its format."""

    path: str
    keys: list[str] | None
    format: str | None

    @classmethod
    def parse(cls, argument: str, known_format: str | None) -> InputFile:
        """Take ``PATH`` or ``PATH:KEY[,KEY...]`` apart.

        The part after the last colon names keys unless it has a slash, as the rest of an address
        would, or unless a file has that very name.
        """
        path, colon, names = argument.rpartition(":")
        keys: list[str] | None = [name.strip() for name in names.split(",")]
        if not (colon and path) or set(names) & {"/", "\\"} or Path(argument).exists():
            path, keys = argument, None
        elif not all(keys or []):
            # Such as "a.parquet:" or "a.parquet:x,,y".
            path, keys = argument, None
        return cls(path, keys, known_format or suffix_format(path) or _format_inside(path))

    def read(self, spark: SparkSession, infer_types: bool) -> DataFrame:
        """Make a DataFrame of it; CSV has a line of names."""
        reader = spark.read
        if self.format == "csv":
            reader = reader.option("header", True).option("inferSchema", infer_types)
        return reader.format(str(self.format)).load(self.path)


def suffix_format(path: str) -> str | None:
    """Tell the format by the end of a name, as in ``t.parquet``, ``t.csv.gz``."""
    suffixes = PurePosixPath(path.lower()).suffixes
    if suffixes and suffixes[-1] in _COMPRESSION:
        suffixes.pop()
    return _SUFFIXES.get(suffixes[-1]) if suffixes else None


def _format_inside(path: str) -> str | None:
    """Tell the format of the files in a directory, or of those a pattern matches, if one."""
    found = {suffix_format(file) for file in _data_files(path)}
    return found.pop() if len(found) == 1 else None


def _data_files(path: str) -> Iterator[str]:
    # Path.glob takes no absolute patterns.
    for match in glob.glob(path):
        if Path(match).is_file():
            yield match
        for _, _, names in os.walk(match):
            # Spark's own reading skips these too (_SUCCESS, checksums).
            yield from (name for name in names if not name.startswith(("_", ".")))


def write(df: DataFrame, path: str, file_format: str, mode: str) -> None:
    """Write the result; CSV gets a line of names."""
    writer = df.write.mode(mode).format(file_format)
    if file_format == "csv":
        writer = writer.option("header", True)
    writer.save(path)


def overlaps(output: str, given: str) -> bool:
    """Tell whether one of the two paths is the other or lies in it."""
    one, other = (_normal(path) for path in (output, given))
    return one == other or one.startswith(other + "/") or other.startswith(one + "/")


def _normal(path: str) -> str:
    if path.startswith("file:"):
        path = "/" + path[len("file:") :].lstrip("/")
    return path.rstrip("/") if "://" in path else Path(path).resolve().as_posix()
