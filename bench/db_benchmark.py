"""The joins of db-benchmark, and full joins of its tables.

    bench/db_benchmark.py                    all, 10,000,000 rows in the large tables
    bench/db_benchmark.py 'big-*' --scale 1  some, with 1,000,000 rows

Stock Spark, ours, DuckDB and Polars take turns, query by query. All answers are compared.
"""

from __future__ import annotations

import sys

from harness import db_benchmark
from harness.turns_run import Groups, benchmark, defaults, parse


def main(arguments: list[str]) -> int:
    """Run the queries; 1 if an answer or a plan was wrong."""
    options = parse("db-benchmark", __doc__, 10, arguments, "stock,ours,duckdb,polars")

    def make() -> Groups:
        data = db_benchmark.generate(options.scale, options.data)
        return {"joins": db_benchmark.joins(data, defaults(options))}

    return benchmark("db-benchmark", options, make)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
