"""Options of the demo, and what it needs to be there before it starts."""

from __future__ import annotations

import argparse
import os
import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

REQUIREMENTS = {
    "pyspark": "pyspark==3.5.*",
    "duckdb": "duckdb==1.1.3",
    "matplotlib": "matplotlib",
}
"""Module to what `pip install` calls it. The generator of TPC-DS is built into this DuckDB."""


class DemoError(Exception):
    """The demo cannot run here; the message is one line that says what to do."""


@dataclass(frozen=True)
class Options:
    """The parsed command line."""

    scale_factor: float
    variant: str
    duplicates: int
    runs: int
    master: str
    shuffle_partitions: int
    cache_dir: Path
    output: Path


def default_cache_dir() -> Path:
    """The user's cache directory, as other programs choose it."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "pyspark-skewext" / "demo"


def parse(argv: list[str]) -> Options:
    """Turn arguments into options; wrong ones end the program as argparse does."""
    parser = argparse.ArgumentParser(
        prog="python -m demo",
        description=(
            "Joins six TPC-DS tables (sales and returns of three channels) into one customer "
            "table: with stock Spark's chain of full outer joins, with multi_full_join, and with "
            "DuckDB. Compares plans, answers and times, and writes the table and a picture."
        ),
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--scale-factor", type=_scale, default=0.5, metavar="F", help="size of TPC-DS, in GB")
    add(
        "--variant",
        choices=["both", "customer", "duplicates"],
        default="both",
        help="inputs with one row per customer, with several, or one after the other",
    )
    add(
        "--duplicates",
        type=_positive,
        default=2,
        metavar="N",
        help="rows kept per customer and input in the variant with several",
    )
    add("--runs", type=_positive, default=3, metavar="N", help="timed runs of each plan")
    add("--master", default="local[2]", metavar="URL", help="where Spark runs")
    add(
        "--shuffle-partitions",
        type=_positive,
        default=16,
        metavar="N",
        help="spark.sql.shuffle.partitions, for both plans",
    )
    add(
        "--cache-dir",
        type=Path,
        default=default_cache_dir(),
        metavar="DIR",
        help="where the generated data is kept for the next time",
    )
    add(
        "--output",
        type=Path,
        default=Path("skewext-demo"),
        metavar="DIR",
        help="where the joined table and the picture go",
    )
    return Options(**vars(parser.parse_args(argv)))


def check_requirements() -> None:
    """Say in one line what to install.

    Raises
    ------
    DemoError
        A module or Java is missing.
    """
    missing = [name for name in REQUIREMENTS if find_spec(name) is None]
    if missing:
        packages = " ".join(f"'{REQUIREMENTS[name]}'" for name in missing)
        raise DemoError(f"{' and '.join(missing)} missing; install with: pip install {packages}")
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        raise DemoError("Spark needs Java 8, 11 or 17: install one, or set JAVA_HOME")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def _scale(text: str) -> float:
    number = float(text)
    if not 0 < number <= 100:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 100")
    return number
