"""Queries in which Spark's plan changes for the better late: what replaces joins may hide them.

A fact table has keys `k1` to `k8`, each of one of eight other tables, of 13 to 30 MB at scale
factor 2. A filter on `flag` keeps one in a thousand of their rows.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from harness.questions import Question

_TABLES = 8
_FACT_ROWS = 2_000_000
_ROWS = 175_000
"""Of a scale factor; each table has a seventh more than the one before."""


def generate(scale: float, folder: Path) -> Path:
    """Make the tables, if they are missing. The fact table comes last."""
    fact = folder / "fact.parquet"
    if fact.exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    making = fact.with_suffix(".making")
    with duckdb.connect() as connection:
        for number in range(1, _TABLES + 1):
            path = folder / f"d{number}.parquet"
            connection.execute(f"COPY ({_other(number, scale)}) TO '{path}' (FORMAT parquet)")
        connection.execute(f"COPY ({_fact(scale)}) TO '{making}' (FORMAT parquet)")
    making.rename(fact)
    return folder


def _rows(number: int, scale: float) -> int:
    return max(1, round(_ROWS * scale * (6 + number) / 7))


def _random(of: str, seed: int, below: int) -> str:
    return f"CAST(hash({of}, {seed}) % {below} AS BIGINT)"


def _other(number: int, scale: float) -> str:
    return (
        f"SELECT i AS id{number}, {_random('i', number, 1000)} AS flag{number}, "
        f"md5(CAST(hash(i, {number}) AS VARCHAR)) AS s{number} "
        f"FROM range({_rows(number, scale)}) numbers(i)"
    )


def _fact(scale: float) -> str:
    keys = (
        f"{_random('i', 100 + number, _rows(number, scale))} AS k{number}"
        for number in range(1, _TABLES + 1)
    )
    rows = max(1, round(_FACT_ROWS * scale))
    return f"SELECT i AS id, {', '.join(keys)}, hash(i) % 100000 AS v FROM range({rows}) numbers(i)"


def _broadcasts(tables: int, key: str = "k{}") -> str:
    joins = (
        f" LEFT JOIN d{n} ON {key.format(n)} = id{n} AND flag{n} = 7" for n in range(1, tables + 1)
    )
    strings = ", ".join(f"s{n}" for n in range(1, tables + 1))
    return f"SELECT id, v, {strings} FROM fact{''.join(joins)}"


#: Spark's filters are for scans of 10 GB and more.
_BLOOM = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": "1MB",
    "spark.sql.optimizer.runtime.bloomFilter.creationSideThreshold": "1GB",
}
_REORDERED = {
    "spark.sql.cbo.enabled": "true",
    "spark.sql.cbo.joinReorder.enabled": "true",
    "spark.sql.autoBroadcastJoinThreshold": str(10 * 2**20),
}


def cliffs(data: Path, defaults: dict[str, str]) -> list[Question]:
    """The queries; `defaults` are the settings of those with broadcasts."""
    through_joins = """
        SELECT id, v, s1, s2, s3, s4 FROM fact
          LEFT JOIN d1 ON k1 = id1 LEFT JOIN d2 ON k2 = id2 LEFT JOIN d3 ON k3 = id3
          JOIN d4 ON k4 = id4 AND flag4 = 7
    """
    written_order = """
        SELECT id, v, s5, s6, s7, s8 FROM fact
          JOIN d6 ON k6 = id6 JOIN d7 ON k7 = id7 JOIN d8 ON k8 = id8
          JOIN d5 ON k5 = id5 AND flag5 = 7
    """
    return [
        *(
            Question(
                f"cliff-broadcasts-{n}",
                f"{n} left joins, which Spark changes to broadcasts at run time",
                _broadcasts(n),
                data,
                defaults,
            )
            for n in (2, 4, 8)
        ),
        Question(
            "cliff-broadcasts-one-key",
            "the same, 8 joins on one key",
            _broadcasts(8, "k1"),
            data,
            defaults,
        ),
        Question(
            "cliff-bloom-filters",
            "Bloom filters of Spark's, through three left joins to the scan",
            through_joins,
            data,
            _BLOOM,
        ),
        Question(
            "cliff-reordering",
            "cost-based reordering of four joins",
            written_order,
            data,
            _REORDERED,
            analyzed=True,
        ),
    ]
