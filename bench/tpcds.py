"""TPC-DS: the 99 queries.

    bench/tpcds.py                       all, scale factor 1
    bench/tpcds.py --no-broadcast        all joins by a shuffle
    bench/tpcds.py q5 'q7?' --rounds 5   some

Stock Spark and ours have a session each and take turns, query by query. All answers are compared.
"""

from __future__ import annotations

import sys

from harness import tpc
from harness.questions import Question
from harness.turns_run import Groups, benchmark, defaults, parse


def main(arguments: list[str]) -> int:
    """Run the queries; 1 if an answer or a plan was wrong."""
    options = parse("tpcds", __doc__, 1, arguments)

    def make() -> Groups:
        queries = tpc.generate(tpc.TPCDS, options.scale, options.data)
        conf = defaults(options)
        return {
            "queries": [
                Question(f"q{number}", f"query {number}", sql, options.data, conf)
                for number, sql in queries.items()
            ]
        }

    return benchmark("tpcds", options, make)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
