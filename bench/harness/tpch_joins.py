"""Single joins of tables of TPC-H, none of them by a broadcast."""

from __future__ import annotations

from pathlib import Path

from harness.questions import Question

#: Name, table of the hint, what it is, query.
_JOINS = (
    (
        "join-all-columns",
        "orders",
        "lineitem join orders, all 25 columns",
        "SELECT {hint} * FROM lineitem JOIN orders ON l_orderkey = o_orderkey",
    ),
    (
        "join-6-columns",
        "orders",
        "lineitem join orders, 6 columns",
        """
        SELECT {hint} l_orderkey, l_extendedprice, l_discount, l_shipdate, o_custkey, o_orderdate
        FROM lineitem JOIN orders ON l_orderkey = o_orderkey
        """,
    ),
    (
        "join-left",
        "customer",
        "orders left join customer",
        """
        SELECT {hint} o_orderkey, o_orderdate, o_totalprice, c_name, c_nationkey, c_mktsegment
        FROM orders LEFT JOIN customer ON o_custkey = c_custkey
        """,
    ),
    (
        "join-two-keys",
        "partsupp",
        "lineitem join partsupp on two keys",
        """
        SELECT {hint} l_orderkey, l_quantity, l_extendedprice, l_discount, ps_supplycost
        FROM lineitem JOIN partsupp ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey
        """,
    ),
    (
        "join-semi",
        "lineitem",
        "orders with a late line: EXISTS",
        """
        SELECT o_orderkey, o_orderdate, o_orderpriority FROM orders
        WHERE EXISTS (
          SELECT {hint} * FROM lineitem
          WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
        """,
    ),
    (
        "join-group-by",
        "orders",
        "a group-by above lineitem join orders",
        """
        SELECT {hint} o_orderdate, o_orderpriority, count(*),
          sum(l_extendedprice * (1 - l_discount))
        FROM lineitem JOIN orders ON l_orderkey = o_orderkey
        GROUP BY o_orderdate, o_orderpriority
        """,
    ),
    (
        "join-dates",
        "orders",
        "lineitem join orders, dates filtered on both sides",
        """
        SELECT {hint} l_orderkey, l_extendedprice, l_discount, o_orderdate, o_shippriority
        FROM lineitem JOIN orders ON l_orderkey = o_orderkey
        WHERE o_orderdate < DATE'1995-03-15' AND l_shipdate > DATE'1995-03-15'
        """,
    ),
)


def joins(data: Path) -> list[Question]:
    """The joins, by each way."""
    ways = ("stock", "stock-hash", "ours", "comet")
    conf = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
    return [
        Question(name, about, sql, data, conf, hint, one_join=True, ways=ways)
        for name, hint, about, sql in _JOINS
    ]
