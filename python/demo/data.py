"""Real data without a download: TPC-DS made by DuckDB, prepared per customer, kept in a cache.

DuckDB is also the demo's referee: it joins the same files by itself, and its answer is compared
with Spark's.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from demo.inputs import CUSTOMER, INPUTS, KEY, VARIANTS, Input, Variant, input_file
from demo.options import DemoError

LAYOUT = 1
"""Part of the cache directory's name; raise it when the prepared files change."""


@dataclass(frozen=True)
class InputFacts:
    """What the demo tells about one input."""

    table: str
    rows: int
    customers: int
    null_keys: int
    most_rows: int
    columns: int


def cached_data(cache_dir: Path, scale_factor: float, duplicates: int) -> Path:
    """Directory of the prepared inputs for these parameters; it exists only when complete."""
    return cache_dir / f"tpcds-sf{scale_factor:g}-top{duplicates}-v{LAYOUT}"


def make_data(cache_dir: Path, scale_factor: float, duplicates: int) -> Path:
    """Make all inputs of all variants, unless they are there already.

    The files are written to a temporary neighbour and moved into place at the end, so that an
    interrupted run leaves nothing that looks complete.
    """
    target = cached_data(cache_dir, scale_factor, duplicates)
    if target.exists():
        return target
    cache_dir.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="making-", dir=cache_dir))
    try:
        files = work / "files"
        with _connect(work / "tpcds.duckdb", work) as connection:
            _load_tpcds(connection)
            connection.execute(f"CALL dsdgen(sf={scale_factor!r})")
            for variant in VARIANTS:
                (files / variant.name).mkdir(parents=True)
                for source in INPUTS:
                    query = (
                        _per_customer(source)
                        if variant == CUSTOMER
                        else _newest_rows(source, duplicates)
                    )
                    _write(connection, query, input_file(files, variant, source))
        try:
            files.replace(target)
        except OSError:
            # Another run was faster; its files are the same.
            if not target.exists():
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def facts(data: Path, variant: Variant) -> list[InputFacts]:
    """Count rows, customers and null keys of every input, in their order."""
    result = []
    with _connect() as connection:
        for source in INPUTS:
            file = _quoted(input_file(data, variant, source))
            counts = connection.execute(
                f"SELECT count(*), count(DISTINCT {KEY}), count(*) - count({KEY}) FROM {file}"
            ).fetchone()
            most = connection.execute(
                f"SELECT count(*) AS n FROM {file} WHERE {KEY} IS NOT NULL"
                f" GROUP BY {KEY} ORDER BY n DESC LIMIT 1"
            ).fetchone()
            columns = connection.execute(f"DESCRIBE SELECT * FROM {file}").fetchall()
            rows, customers, null_keys = counts or (0, 0, 0)
            result.append(
                InputFacts(
                    source.table,
                    rows,
                    customers,
                    null_keys,
                    most[0] if most else 0,
                    len(columns),
                )
            )
    return result


def write_duckdb_answer(data: Path, variant: Variant, output: Path) -> None:
    """Let DuckDB join the six inputs with ``FULL JOIN … USING`` and write what it found."""
    files = [_quoted(input_file(data, variant, source)) for source in INPUTS]
    chain = files[0] + "".join(f"\n  FULL JOIN {file} USING ({KEY})" for file in files[1:])
    output.parent.mkdir(parents=True, exist_ok=True)
    with _connect() as connection:
        _write(connection, f"SELECT * FROM {chain}", output)


def _per_customer(source: Input) -> str:
    """One row per customer; the rows without a customer become one row with a null key."""
    start = source.prefix
    # A sum of decimals is a DECIMAL(38, 2) in DuckDB; 18 digits are plenty and cheap in Spark.
    sums = "".join(
        f",\n  sum({column})::DECIMAL(18, 2) AS {start}_{name}"
        for name, column in source.measures.items()
    )
    return f"""
SELECT {source.key}::INTEGER AS {KEY},
  count(*) AS {source.always_set},
  count(DISTINCT {source.order}) AS {start}_orders,
  min(d_date) AS {start}_first_day,
  max(d_date) AS {start}_last_day,
  arg_max(i_category, ({source.amount}, {source.order}, {source.item})) AS {start}_top_category
  {sums}
FROM {_with_day_and_item(source)}
GROUP BY {source.key}
ORDER BY {KEY}"""


def _newest_rows(source: Input, limit: int) -> str:
    """The newest rows of every customer, and every row whose customer is unknown.

    The limit bounds the product that a join of duplicate keys makes: limit ** 6 rows a customer.
    """
    start = source.prefix
    # Two measures are enough here: the product makes the rows many already.
    measures = "".join(
        f",\n  {column} AS {start}_{name}" for name, column in list(source.measures.items())[:2]
    )
    return f"""
SELECT {source.key}::INTEGER AS {KEY},
  1 AS {source.always_set},
  {source.order}::BIGINT AS {start}_order,
  {source.item}::INTEGER AS {start}_item,
  d_date AS {start}_day,
  i_category AS {start}_category
  {measures}
FROM {_with_day_and_item(source)}
QUALIFY {source.key} IS NULL OR row_number() OVER (
  PARTITION BY {source.key}
  ORDER BY d_date DESC NULLS LAST, {source.order} DESC, {source.item} DESC) <= {limit}
ORDER BY {KEY}, {start}_order, {start}_item"""


def _with_day_and_item(source: Input) -> str:
    return f"""{source.table}
  LEFT JOIN date_dim ON d_date_sk = {source.day}
  LEFT JOIN item ON i_item_sk = {source.item}"""


@contextmanager
def _connect(
    database: Path | None = None, spill: Path | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect(str(database) if database else ":memory:")
    try:
        # Its bar would run into the demo's own progress lines.
        connection.execute("SET enable_progress_bar = false")
        if spill:
            connection.execute(f"SET temp_directory = {_quoted(spill / 'spill')}")
        yield connection
    finally:
        connection.close()


def _load_tpcds(connection: duckdb.DuckDBPyConnection) -> None:
    # Only what the wheel has built in: no look at the network, not even when it is there.
    connection.execute("SET autoinstall_known_extensions = false")
    try:
        connection.execute("LOAD tpcds")
    except duckdb.Error as error:
        raise DemoError(
            f"duckdb {duckdb.__version__} has no built-in TPC-DS generator. "
            "Install the one that has: pip install duckdb==1.1.3"
        ) from error


def _write(connection: duckdb.DuckDBPyConnection, query: str, file: Path) -> None:
    connection.execute(f"COPY ({query}) TO {_quoted(file)} (FORMAT parquet)")


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
