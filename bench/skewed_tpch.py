"""TPC-H with skewed foreign keys: what skew costs stock Spark, and what it costs ours.

    bench/skewed_tpch.py                        z = 0, 0.5 and 1, scale factor 2
    bench/skewed_tpch.py 'q9-*' 'q18-*'         some queries

Stock Spark and ours have a session each and take turns, query by query. All answers are compared.
"""

from __future__ import annotations

import sys

from harness import skewed_tpch, tpc
from harness.turns_run import Groups, benchmark, defaults, parse


def main(arguments: list[str]) -> int:
    """Run the queries; 1 if an answer or a plan was wrong."""
    options = parse("skewed-tpch", __doc__, 2, arguments, "stock,ours")

    def make() -> Groups:
        even = options.data.with_name(f"tpch-sf{options.scale:g}")
        queries = tpc.generate(tpc.TPCH, options.scale, even)
        conf = defaults(options)
        return {
            skewed_tpch.group(z): skewed_tpch.questions(
                skewed_tpch.generate(options.data / f"z{z:g}", z, even), z, queries, conf
            )
            for z in skewed_tpch.EXPONENTS
        }

    return benchmark("skewed-tpch", options, make)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
