"""Commands inside the process of a session, for engines that run a query without Spark.

DuckDB and Polars get the same query over the same files. They have as many threads as Spark has
cores. Neither has a `noop` sink: a hash of all rows reads all values, and is the cheapest.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from harness import question_worker
from harness.other import answer_file
from harness.worker import Json, Session, reported


class Engine(ABC):
    """The tables of a folder in an engine."""

    def __init__(self, data: Path) -> None:
        self._tables = {path.stem: str(path) for path in sorted(data.glob("*.parquet"))}

    @abstractmethod
    def save(self, sql: str, path: str) -> None:
        """Write the rows of a query into a file."""

    @abstractmethod
    def run(self, sql: str) -> None:
        """Compute all values of a query, and keep none."""


class DuckDB(Engine):
    """Its memory limit is the heap of a session."""

    def save(self, sql: str, path: str) -> None:
        self._execute(f"COPY ({sql}) TO '{path}' (FORMAT parquet)")

    def run(self, sql: str) -> None:
        self._execute(f"SELECT bit_xor(hash(joined)) FROM ({sql}) joined")

    def _execute(self, sql: str) -> None:
        import duckdb

        spec = Session.spec
        limits = {"threads": spec.cores, "memory_limit": f"{spec.heap}b"}
        with duckdb.connect(config=limits) as connection:
            for name, path in self._tables.items():
                connection.execute(f"CREATE VIEW {name} AS FROM '{path}'")
            connection.execute(sql).fetchall()


class Polars(Engine):
    """Its SQL plans a range join as `join_where` does. It has no limit of its memory."""

    def save(self, sql: str, path: str) -> None:
        self._query(sql).sink_parquet(path)

    def run(self, sql: str) -> None:
        import polars

        self._query(sql).select(polars.all().hash().sum()).collect(engine="streaming")

    def _query(self, sql: str) -> Any:
        os.environ.setdefault("POLARS_MAX_THREADS", str(Session.spec.cores))
        import polars

        frames = {name: polars.scan_parquet(path) for name, path in self._tables.items()}
        return polars.SQLContext(frames).execute(sql)


_ENGINES: dict[str, type[Engine]] = {"duckdb": DuckDB, "polars": Polars}


def answer(engine: str, sql: str, data: Path, conf: dict[str, str], analyzed: bool) -> Json:
    """The same as of a query of Spark's, which reads the answer from a file."""

    def command() -> Json:
        path = answer_file(Session.spark, engine)
        begin = time.perf_counter()
        _ENGINES[engine](data).save(sql, path)
        seconds = time.perf_counter() - begin
        found = question_worker.sums(Session.spark.read.parquet(path))
        return {**found, "seconds": round(seconds, 3)}

    return reported(command)


def run(engine: str, sql: str, data: Path, conf: dict[str, str], analyzed: bool) -> Json:
    """Run the query."""

    def command() -> Json:
        cpu, begin = time.process_time(), time.perf_counter()
        _ENGINES[engine](data).run(sql)
        seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
        return {"seconds": round(seconds, 3), "cpu_seconds": round(cpu, 2), "joins": {}}

    return reported(command)
