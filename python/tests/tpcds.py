"""TPC-DS as DuckDB makes it: tables as Parquet files, queries, answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
from harness.tpc import TPCDS, without_limit

TABLES = TPCDS.tables


class Tpcds:
    """The tables of a scale factor in one connection, and in files for Spark."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
        self._connection = connection
        self._folder = folder
        self._queries = TPCDS.queries(connection)

    def file(self, table: str) -> Path:
        return self._folder / f"{table}.parquet"

    def query(self, number: int) -> str:
        """Query of that number, with all of its rows."""
        return without_limit(self._queries[number])

    def answer(self, query: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(query).fetchall()


@contextmanager
def made_tpcds(folder: Path, scale_factor: float) -> Iterator[Tpcds]:
    with duckdb.connect() as connection:
        TPCDS.load(connection, scale_factor)
        # Spark's order of nulls; windows depend on it.
        connection.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        TPCDS.save(connection, folder)
        yield Tpcds(connection, folder)
