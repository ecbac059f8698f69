"""The lines of Spark, read from project/spark-lines.properties, which explains the keys."""

from __future__ import annotations

from pathlib import Path

_FILE = Path(__file__).resolve().parents[1] / "project" / "spark-lines.properties"
_TEXT = _FILE.read_text(encoding="utf-8").replace("\\\n", "")
_ROWS = [row for row in _TEXT.splitlines() if row[:1] not in ("", "#")]
_VALUES = {key.strip(): value.strip() for key, _, value in (row.partition("=") for row in _ROWS)}

#: All lines, the default first.
LINES = _VALUES["lines"].split()


def of(line: str, key: str) -> str:
    """A value of a line, such as its `spark`; empty if the line has none."""
    return _VALUES.get(f"{line}.{key}", "")
