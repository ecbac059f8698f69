"""Joins by DuckDB."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable

import duckdb

from harness.case import Point
from harness.other import OtherEngine, answer_file, files_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class ByDuckDB(OtherEngine):
    """DuckDB's answer to a query."""

    #: The query of tables, which are named t0, t1 and so on, with these key columns.
    query: Callable[[Sequence[str], Sequence[str]], str]

    def __call__(self, tables: Sequence[DataFrame], keys: Sequence[str], _: Point) -> DataFrame:
        """The answer, through a file."""
        spark = tables[0].sparkSession
        path = answer_file(spark, "duckdb")
        with duckdb.connect() as connection:
            connection.execute(f"COPY ({self._sql(tables, keys)}) TO '{path}' (FORMAT parquet)")
        return spark.read.parquet(path)

    def seconds(
        self, tables: Sequence[DataFrame], keys: Sequence[str], cores: int, memory: str
    ) -> float:
        """DuckDB has no `noop` sink: a hash of whole rows reads all values and is the cheapest."""
        rows = f"SELECT bit_xor(hash(joined)) FROM ({self._sql(tables, keys)}) joined"
        with duckdb.connect(config={"threads": cores, "memory_limit": f"{memory}b"}) as connection:
            begin = time.perf_counter()
            connection.execute(rows).fetchall()
            return time.perf_counter() - begin

    def _sql(self, tables: Sequence[DataFrame], keys: Sequence[str]) -> str:
        relations = [f"read_parquet({files_of(each)}) t{n}" for n, each in enumerate(tables)]
        return self.query(relations, keys)


def full_joins(tables: Sequence[str], keys: Sequence[str]) -> str:
    """A chain of full joins on all keys."""
    joined, *others = tables
    using = f"USING ({', '.join(keys)})"
    return f"SELECT * FROM {joined}{''.join(f' FULL JOIN {each} {using}' for each in others)}"
