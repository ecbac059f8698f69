"""TPC-H: the 22 queries, single joins of its tables, and queries whose plan Spark changes late.

    bench/tpch.py                            all, scale factor 2
    bench/tpch.py 'join-*' --ways stock,stock-hash,ours,comet    the joins, on a Spark with Comet
    bench/tpch.py q5 q20 --rounds 5          some queries
    bench/tpch.py 'q*' --no-broadcast --set spark.skewext.shuffle.enabled=false

Stock Spark and ours have a session each and take turns, query by query. All answers are compared.
"""

from __future__ import annotations

import sys

from harness import cliffs, tpc, tpch_joins
from harness.questions import Question
from harness.turns_run import Groups, benchmark, defaults, parse


def main(arguments: list[str]) -> int:
    """Run the queries; 1 if an answer or a plan was wrong."""
    options = parse("tpch", __doc__, 2, arguments)

    def make() -> Groups:
        queries = tpc.generate(tpc.TPCH, options.scale, options.data)
        shop = cliffs.generate(options.scale, options.data / "cliffs")
        conf = defaults(options)
        return {
            "joins": tpch_joins.joins(options.data),
            "queries": [
                Question(f"q{number}", f"query {number}", sql, options.data, conf)
                for number, sql in queries.items()
            ],
            "cliffs": cliffs.cliffs(shop, conf),
        }

    return benchmark("tpch", options, make)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
