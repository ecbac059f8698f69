"""Joins with OR of two tables: a.email = b.email OR a.phone = b.phone.

    bench/or_joins.py                             20,000 rows in each table
    bench/or_joins.py inner left --scale 2        some queries, 40,000 rows
    bench/or_joins.py --scale 15 --ways ours      300,000 rows, which take Spark minutes

Stock Spark and ours have a session each and take turns, query by query. All answers are compared.
Stock Spark compares all pairs of rows, so its time grows with the square of the scale.
"""

from __future__ import annotations

import sys

from harness import or_joins
from harness.turns_run import Groups, benchmark, defaults, parse


def main(arguments: list[str]) -> int:
    """Run the queries; 1 if an answer or a plan was wrong."""
    options = parse("or-joins", __doc__, 1, arguments)
    options.ways = tuple(way for way in options.ways if way in or_joins.WAYS)

    def make() -> Groups:
        folder = or_joins.generate(options.scale, options.data)
        return {"joins with OR": or_joins.joins(folder, defaults(options))}

    return benchmark("or-joins", options, make)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
