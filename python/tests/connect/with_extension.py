"""What a server that has the extension does: `with_extension.py [sc://host:port]`."""

import sys
from collections.abc import Callable
from typing import Any

from answers import (
    TECHNIQUES,
    check_buckets,
    check_joins,
    check_skew_joins,
    checked_by_notebook,
    fails,
    inputs,
    sides,
)
from pyspark.errors import AnalysisException, PySparkTypeError, PySparkValueError
from pyspark.sql import SparkSession

import pyspark_skewext as skewext


def check_techniques(spark: SparkSession) -> None:
    left, right = sides(spark)
    for technique, options in TECHNIQUES.items():
        joined = skewext.skew_join(left, right, "k", "left", technique, **options)
        said = skewext.explain(joined).joins[0]["origin"]
        assert said["status"] == "asked for" and "skew_join by" in said["text"], (technique, said)

    def refused(*arguments: Any, **options: Any) -> Callable[[], object]:
        return lambda: skewext.skew_join(left, right, *arguments, **options)

    # What the technique cannot do, and options that are wrong.
    fails(
        AnalysisException,
        "cannot do this join",
        refused(left.k > right.k, "inner", "salted", hot_keys=[1]),
    )
    fails(AnalysisException, "must be", refused("k", "full", "iterative_broadcast", chunks=5000))
    fails(AnalysisException, "these options: salts", refused("k", "full", "broadcast", salts=3))
    fails(AnalysisException, "hot_keys", refused("k", "full", "broadcast", hot_keys=[3]))
    fails(PySparkValueError, "no technique 'best'", refused("k", "full", "best"))
    fails(PySparkValueError, "cross", refused("k", "cross"))
    fails(PySparkValueError, "comma", refused("k", "full", "salted", hot_keys=["a,b"]))
    fails(
        PySparkTypeError, "hot key of type bytes", refused("k", "full", "salted", hot_keys=[b"a"])
    )
    fails(PySparkValueError, "on is a condition", refused(left.k == right.k, "full", "salted"))
    fails(AnalysisException, "no column 'nope'", refused("nope"))
    # The join of a join, both by one technique, of which only the upper one cannot be done.
    lower = skewext.skew_join(left, right, "k", "full", "broadcast_map")
    fails(
        AnalysisException,
        "these options: chunks",
        lambda: skewext.skew_join(lower, right, "k", "full", "broadcast_map", chunks=2),
    )
    assert skewext.skew_join(lower, right.withColumnRenamed("v", "w"), "k").count() > 0


def session() -> SparkSession:
    """On the server of the address that is given, else on one that PySpark starts."""
    builder = SparkSession.builder
    if len(sys.argv) > 1:
        return builder.remote(sys.argv[1]).getOrCreate()
    builder = builder.remote("local[2]").config("spark.sql.shuffle.partitions", 2)
    return skewext.configure(builder.config("spark.ui.enabled", False)).getOrCreate()


def main() -> None:
    spark = session()
    assert skewext.is_enabled(spark)
    check_joins(spark)
    if len(sys.argv) > 1:
        spark.conf.set("spark.sql.shuffle.partitions", 2)
        check_everything(spark)
    spark.stop()
    print("all as it should be")


def check_everything(spark: SparkSession) -> None:
    check_skew_joins(spark)
    check_techniques(spark)
    check_buckets(spark)
    not_there = checked_by_notebook(spark)
    assert not not_there, not_there

    a, b, _ = inputs(spark)
    join = skewext.explain(skewext.multi_full_join(a, b, on="k")).joins[0]
    assert join["origin"]["status"] == "asked for", join

    skewed = spark.range(100).selectExpr("if(id % 2 = 0, 7, id) AS user")
    report = skewext.skew_report(skewed, "user", partitions=4)
    assert report.hot_keys[0].key == 7 and report.hot_keys[0].rows.low == 51, report
    both = skewext.skew_report(skewed, "user", other=skewed.where("user < 20"), partitions=4)
    assert both.output is not None and both.hot_keys[0].output_rows.high == 51 * 51, both
    a.join(b, "k").collect()
    assert skewext.query_report().stages, "no stages"

    fails(
        AnalysisException, "has no column 'nope'", lambda: skewext.multi_full_join(a, b, on="nope")
    )
    fails(PySparkValueError, "Unknown how", lambda: skewext.multi_join(a, b, on="k", how="right"))
    fails(
        AnalysisException,
        "have two columns named 'v'",
        lambda: skewext.multi_full_join(a, b, on="k", suffixes=["", ""]),
    )
    fails(PySparkValueError, "progress", lambda: skewext.skew_report(a, "k", progress=print))
    # A name that would end the text of a query.
    odd = a.withColumnRenamed("k", "{k}'\\")
    assert skewext.multi_full_join(odd, odd, on="{k}'\\").columns[0] == "{k}'\\"
    spark.conf.set("spark.skewext.enabled", False)
    assert not skewext.is_enabled(spark)


if __name__ == "__main__":
    main()
