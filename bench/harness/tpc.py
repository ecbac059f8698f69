"""TPC-H and TPC-DS as DuckDB makes them: tables as Parquet files, and the queries.

DuckDB 1.1.3, which the tests have, is the last one with both generators in its wheel.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import duckdb

_LIMIT = re.compile(r"\bLIMIT\s+\d+\s*$", re.IGNORECASE)
_ABOUT = "queries.json"


@dataclass(frozen=True)
class Benchmark:
    """One of the two."""

    name: str
    generator: str
    tables: tuple[str, ...]

    def load(self, connection: duckdb.DuckDBPyConnection, scale: float) -> None:
        """Make the tables of a scale factor in DuckDB."""
        connection.execute("SET autoinstall_known_extensions = false")
        connection.execute(f"LOAD {self.name}")
        connection.execute(f"CALL {self.generator}(sf={scale!r})")

    def save(self, connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
        """Write the tables."""
        for table in self.tables:
            path = folder / f"{table}.parquet"
            connection.execute(f"COPY {table} TO '{path}' (FORMAT parquet)")

    def queries(self, connection: duckdb.DuckDBPyConnection) -> dict[int, str]:
        """The queries by number, in words that DuckDB and Spark understand."""
        found = connection.execute(f"SELECT query_nr, query FROM {self.name}_queries()").fetchall()
        return {number: query.strip().rstrip(";").rstrip() for number, query in found}


TPCH = Benchmark(
    "tpch",
    "dbgen",
    ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"),
)
TPCDS = Benchmark(
    "tpcds",
    "dsdgen",
    (
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
    ),
)


def without_limit(query: str) -> str:
    """The query with all of its rows.

    Which of several rows with equal sort keys are among the first hundred is nobody's fault.
    """
    return _LIMIT.sub("", query)


def for_spark(query: str) -> str:
    """Spark takes double quotes for those of a string."""
    return query.replace('"', "`")


def generate(benchmark: Benchmark, scale: float, folder: Path) -> dict[int, str]:
    """Make the files, if they are missing, and return the queries.

    The file of the queries comes last: where it is, all others are.
    """
    about = folder / _ABOUT
    if not about.exists():
        folder.mkdir(parents=True, exist_ok=True)
        # In a file, as large scale factors do not fit into memory.
        database = folder / "making.duckdb"
        database.unlink(missing_ok=True)
        with duckdb.connect(str(database)) as connection:
            benchmark.load(connection, scale)
            benchmark.save(connection, folder)
            queries = benchmark.queries(connection)
        database.unlink()
        made = {"benchmark": benchmark.name, "scale": scale, "queries": queries}
        about.write_text(json.dumps(made, indent=1), encoding="utf-8")
    made = json.loads(about.read_text(encoding="utf-8"))
    if (made["benchmark"], made["scale"]) != (benchmark.name, scale):
        raise ValueError(f"{folder} has {made['benchmark']} of scale factor {made['scale']}")
    return {int(number): for_spark(query) for number, query in made["queries"].items()}
