"""The tables of single tasks: files of the same number of rows, each read by a task of its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb

#: Columns of a table by type and content, after the key and again from the start. They differ in
#: how well they can be encoded.
_VALUES = (
    ("CAST(hash(i, {seed}) % 100000 AS BIGINT)", 8),
    ("CAST(hash(i, {seed}) >> 1 AS BIGINT)", 8),
    ("DATE '1992-01-01' + CAST(hash(i, {seed}) % 2500 AS INTEGER)", 4),
    ("substr(md5(CAST(hash(i, {seed}) AS VARCHAR)), 1, 16)", 16),
)
_KEY_BYTES = 8
#: Rows of the small table; the keys of others have none there.
_SMALL = 100


def width(columns: int) -> int:
    """Bytes of the values of a row with so many columns, the key among them."""
    return _KEY_BYTES + sum(_VALUES[n % len(_VALUES)][1] for n in range(columns - 1))


def generate(folder: Path, columns: int, rows: int, files: int) -> None:
    """Make the tables `big`, of so many files, and `small`, if they are missing."""
    small = folder / "small" / "0.parquet"
    if small.exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("big", "small"):
        (folder / name).mkdir(parents=True)
    values = "".join(
        f", {_VALUES[n % len(_VALUES)][0].format(seed=n)} AS v{n}" for n in range(columns - 1)
    )
    # Keys are in random order, and none is there twice.
    distinct = "CAST(hash(i) >> 1 AS BIGINT)"
    with duckdb.connect() as connection:
        for file in range(files):
            rows_of = f"range({file * rows}, {(file + 1) * rows}) numbers(i)"
            path = folder / "big" / f"{file:05d}.parquet"
            connection.execute(
                f"COPY (SELECT {distinct} AS k{values} FROM {rows_of}) TO '{path}' (FORMAT parquet)"
            )
        connection.execute(
            f"COPY (SELECT {distinct} AS small_k, i AS small_v FROM range({_SMALL}) numbers(i)) "
            f"TO '{small}' (FORMAT parquet)"
        )
