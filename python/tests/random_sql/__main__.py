"""The command line: as many random queries as one wants."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession
from stock import QUICK_JVM

import pyspark_skewext as skewext
from random_sql.engines import Engines
from random_sql.hunt import hunt


def main(arguments: list[str]) -> int:
    """Ask them; 1 if an answer was wrong."""
    parser = argparse.ArgumentParser(prog="random_sql", description=__doc__)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6), help="(random)")
    parser.add_argument("--count", type=int, default=2000, help="of queries (2000)")
    parser.add_argument("--first", type=int, default=0, help="number of the first one (0)")
    parser.add_argument("--minutes", type=float, help="in place of --count")
    parser.add_argument("--failures", type=int, default=3, help="after which to stop (3)")
    options = parser.parse_args(arguments)
    seconds = 60 * (options.minutes or float("inf"))
    count = 10**9 if options.minutes else options.count
    os.environ["PYSPARK_PYTHON"] = sys.executable

    def tell(text: str) -> None:
        print(text, flush=True)

    tell(f"--seed {options.seed} --count {count}")
    with tempfile.TemporaryDirectory() as home:
        spark = _session(Path(home))
        engines = Engines(spark, Path(home))
        found = hunt(engines, options.seed, count, options.failures, tell, seconds, options.first)
        tell(str(found))
        engines.close()
        spark.stop()
    return 1 if found.failures else 0


def _session(home: Path) -> SparkSession:
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("random queries")
        .config("spark.ui.enabled", False)
        .config("spark.ui.showConsoleProgress", False)
        .config("spark.driver.memory", "1g")
        .config("spark.default.parallelism", 1)
        .config("spark.sql.autoBroadcastJoinThreshold", -1)
        .config("spark.sql.warehouse.dir", str(home / "warehouse"))
        # Much of the code runs only some thousand times.
        .config("spark.driver.extraJavaOptions", " ".join(QUICK_JVM))
    )
    spark = skewext.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
