"""TPC-DS as DuckDB makes it: tables as Parquet files, queries, answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

TABLES = [
    "call_center",
    "catalog_page",
    "catalog_returns",
    "catalog_sales",
    "customer",
    "customer_address",
    "customer_demographics",
    "date_dim",
    "household_demographics",
    "income_band",
    "inventory",
    "item",
    "promotion",
    "reason",
    "ship_mode",
    "store",
    "store_returns",
    "store_sales",
    "time_dim",
    "warehouse",
    "web_page",
    "web_returns",
    "web_sales",
    "web_site",
]


class Tpcds:
    """The tables of a scale factor in one connection, and in files for Spark."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
        self._connection = connection
        self._folder = folder

    def file(self, table: str) -> Path:
        return self._folder / f"{table}.parquet"

    def query(self, number: int) -> str:
        """Query of that number, in words that DuckDB and Spark understand, without its LIMIT.

        Which of several rows with equal sort keys are among the first hundred is nobody's fault.
        """
        row = self._connection.execute(
            "SELECT query FROM tpcds_queries() WHERE query_nr = ?", [number]
        ).fetchone()
        assert row is not None
        return re.sub(r"LIMIT\s+100\s*;?\s*$", "", row[0].strip().rstrip(";"))

    def answer(self, query: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(query).fetchall()


@contextmanager
def made_tpcds(folder: Path, scale_factor: float) -> Iterator[Tpcds]:
    with duckdb.connect() as connection:
        connection.execute("SET autoinstall_known_extensions = false")
        connection.execute("LOAD tpcds")
        connection.execute(f"CALL dsdgen(sf={scale_factor!r})")
        # Spark's order of nulls; windows depend on it.
        connection.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        made = Tpcds(connection, folder)
        for table in TABLES:
            connection.execute(f"COPY {table} TO '{made.file(table)}' (FORMAT parquet)")
        yield made
