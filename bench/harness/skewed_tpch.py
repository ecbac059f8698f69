"""TPC-H with skewed foreign keys: the same queries, and the same rows but for these keys.

An order's customer, and the part and supplier of a line, follow Zipf's law with the exponent z, as
in the public skewed variants of TPC-H. With z = 0 each has the same chance, as in TPC-H.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from harness import tpc
from harness.questions import Question

Json = dict[str, Any]

EXPONENTS = (0.0, 0.5, 1.0)
#: Those that join by a skewed key.
_QUERIES = (3, 5, 7, 8, 9, 10, 13, 17, 18, 20, 21)
#: Tables with a skewed key: the key, the rows of which one is drawn, and what draws it.
_SKEWED = {
    # One customer in three has no order, on which q13 and q22 rely.
    "orders": (
        "c_custkey AS o_custkey",
        "SELECT c_custkey, row_number() OVER (ORDER BY hash(c_custkey)) AS place "
        "FROM customer WHERE c_custkey % 3 > 0",
        "hash(o_orderkey, 1)",
    ),
    # The part and the supplier of a line are a row of partsupp.
    "lineitem": (
        "ps_partkey AS l_partkey, ps_suppkey AS l_suppkey",
        "SELECT ps_partkey, ps_suppkey, "
        "row_number() OVER (ORDER BY hash(ps_partkey, ps_suppkey)) AS place FROM partsupp",
        "hash(l_orderkey * 8 + l_linenumber)",
    ),
}


def generate(folder: Path, z: float, of: Path) -> Path:
    """Make the tables with this exponent of those of TPC-H, if they are missing."""
    folder.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as connection:
        for table in tpc.TPCH.tables:
            path, even = folder / f"{table}.parquet", of / f"{table}.parquet"
            connection.execute(f"CREATE VIEW {table} AS FROM '{even}'")
            if table not in _SKEWED and not path.exists():
                path.symlink_to(even)
        for table, (keys, places, hashed) in _SKEWED.items():
            path, making = folder / f"{table}.parquet", folder / f"{table}.making"
            if not path.exists():
                connection.execute(f"CREATE TABLE places AS {places}")
                (count,) = connection.execute("SELECT count(*) FROM places").fetchall()[0]
                query = (
                    f"SELECT {table}.* REPLACE ({keys}) FROM {table} "
                    f"JOIN places ON place = {_place(z, hashed, count)}"
                )
                connection.execute(f"COPY ({query}) TO '{making}' (FORMAT parquet)")
                connection.execute("DROP TABLE places")
                making.rename(path)
    return folder


def _place(z: float, hashed: str, count: int) -> str:
    """A place from 1 on, by the inverse of the continuous form of Zipf's law."""
    share = f"(({hashed}) % 1000000007) / 1000000007.0"
    place = f"pow({count}, {share})" if z == 1 else f"{count} * pow({share}, {1 / (1 - z)})"
    return f"least({count}, 1 + CAST(floor({place}) AS BIGINT))"


def group(z: float) -> str:
    """The name of the queries with this exponent."""
    return f"z = {z:g}"


def questions(
    data: Path, z: float, queries: dict[int, str], conf: dict[str, str]
) -> list[Question]:
    """The queries."""
    return [
        Question(f"q{number}-z{z:g}", f"query {number}, z = {z:g}", queries[number], data, conf)
        for number in _QUERIES
    ]


def penalties(groups: dict[str, dict[str, Json]]) -> list[list[str]]:
    """How many times as long a query takes with skewed keys, and how uneven its tasks are."""
    ways = ("stock", "ours")
    skewed = EXPONENTS[1:]
    head = ["query"]
    for way in ways:
        head += [f"{way}, z = 0, s", *(f"{way}, z = {z:g}" for z in skewed)]
    head += [f"{way}, longest / median task, z = {skewed[-1]:g}" for way in ways]
    return [head, *(_row(number, groups, ways, skewed) for number in _QUERIES)]


def _row(
    number: int,
    groups: dict[str, dict[str, Json]],
    ways: tuple[str, ...],
    skewed: tuple[float, ...],
) -> list[str]:
    def of(z: float, way: str) -> Json:
        found: Json = groups[group(z)][f"q{number}-z{z:g}"]["ways"][way]
        return found

    row = [f"q{number}"]
    for way in ways:
        even = of(0.0, way)["median"]
        row += [f"{even:.2f}", *(f"{of(z, way)['median'] / even:.2f}" for z in skewed)]
    for way in ways:
        balance = of(skewed[-1], way).get("balance")
        row.append(f"{balance['ratio']:.1f}" if balance else "")
    return row
