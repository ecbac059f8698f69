"""Joins with OR of two tables: a.email = b.email OR a.phone = b.phone.

    bench/or_joins.py                             20,000 rows in each table, then 300,000
    bench/or_joins.py inner left --scale 2        some queries, 40,000 rows

Stock Spark and ours have a session each and take turns, query by query. `by-hand` is stock Spark
with a union of joins. DuckDB and Polars run the same queries over the same files. All answers are
compared. All but ours and the unions compare all pairs of rows, so their time grows with the square
of the scale, and they do not run the large joins.
"""

from __future__ import annotations

import sys

from harness import or_joins
from harness.turns_run import Groups, benchmark, defaults, parse


def main(arguments: list[str]) -> int:
    """Run the queries; 1 if an answer or a plan was wrong."""
    ways = "stock,by-hand,ours,duckdb,polars"
    options = parse("or-joins", __doc__, 1, arguments, ways)

    def make() -> Groups:
        scale, conf = options.scale, defaults(options)
        small = or_joins.generate(scale, options.data)
        large = or_joins.generate(or_joins.LARGE * scale, options.data / "large")
        return {
            "joins with OR": [
                *or_joins.joins(small, scale, conf),
                *or_joins.large_joins(large, scale, conf),
            ]
        }

    return benchmark("or-joins", options, make)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
