"""Range joins: points in intervals, overlaps, and bands beside an equal key.

    bench/ranges.py                          all, without the cases that take stock Spark hours
    bench/ranges.py 'point-*' --rounds 5     some
    bench/ranges.py band-2m --ways ours      a large case without stock Spark
    bench/ranges.py 'flights-*' genes-reads  tables that packages from PyPI have

Stock Spark and ours have a session each and take turns, query by query. `by-hand` is stock Spark
with bins and an equal join. DuckDB and Polars run the same queries over the same files. All answers
are compared. The scale factor is not for real tables.
"""

from __future__ import annotations

import sys
from pathlib import Path

from harness import ranges, real_ranges, sessions
from harness.measure import available
from harness.turns_run import Groups, benchmark, defaults, parse


def main(arguments: list[str]) -> int:
    """Run the queries; 1 if an answer or a plan was wrong."""
    ways = "stock,by-hand,ours,duckdb,polars"
    options = parse("ranges", __doc__, 1, arguments, ways)

    def make() -> Groups:
        conf = defaults(options)
        groups = {"ranges": ranges.questions(ranges.generate(options.scale, options.data), conf)}
        if packages := available(sessions.fetch_real, options.cache):
            data = real_ranges.generate(Path(packages), options.data / "real")
            groups["real"] = real_ranges.questions(data, conf)
        return groups

    return benchmark("ranges", options, make)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
