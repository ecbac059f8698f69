"""Stages of a query, as the benchmark reads them from an event log."""

from __future__ import annotations

from typing import Any


def stage(number: int, parents: list[int], ms: list[float], rows: list[int]) -> dict[str, Any]:
    total = sum(rows)
    # 20 bytes of a row in the file, 10 in the shuffle.
    sizes = {"bytes_in": 20 * total, "rows_out": total, "bytes_out": 10 * total}
    about = {"stage": number, "parents": parents, "rows_in": total, **sizes}
    return {**about, "task_ms": ms, "task_rows": rows, "start_ms": 0, "end_ms": 0}
