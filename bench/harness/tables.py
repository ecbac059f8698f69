"""Tables in Parquet files, made by DuckDB."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import duckdb


def save(tables: Mapping[str, str], folder: Path) -> Path:
    """Write the results of queries of DuckDB into a folder, if they are missing."""
    folder.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as connection:
        for name, sql in tables.items():
            path = folder / f"{name}.parquet"
            if not path.exists():
                making = path.with_suffix(".making")
                connection.execute(
                    f"COPY ({sql}) TO '{making}' (FORMAT parquet, ROW_GROUP_SIZE 100000)"
                )
                making.rename(path)
    return folder
