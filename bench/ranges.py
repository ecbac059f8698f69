"""Range joins: points in intervals, overlaps, and bands beside an equal key.

    bench/ranges.py                          all, without the cases that take stock Spark hours
    bench/ranges.py 'point-*' --rounds 5     some
    bench/ranges.py band-2m --ways ours      a large case without stock Spark

Stock Spark and ours have a session each and take turns, query by query. All answers are compared.
DuckDB runs the same queries over the same files, and must give as many rows.
"""

from __future__ import annotations

import sys

from harness import ranges
from harness.turns_run import Groups, benchmark, defaults, parse


def main(arguments: list[str]) -> int:
    """Run the queries; 1 if an answer or a plan was wrong."""
    options = parse("ranges", __doc__, 1, arguments)

    def make() -> Groups:
        data = ranges.generate(options.scale, options.data)
        ranges.show_duckdb(data, options.cores, options.queries)
        return {"ranges": ranges.questions(data, defaults(options))}

    return benchmark("ranges", options, make)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
