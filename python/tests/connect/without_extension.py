"""What is left where the server does not have the extension: the same answers."""

import warnings
from tempfile import mkdtemp

from answers import (
    check_buckets,
    check_joins,
    check_skew_joins,
    checked_by_notebook,
    fails,
    inputs,
)
from pyspark.errors import PySparkRuntimeError, PySparkValueError
from pyspark.sql import SparkSession

import pyspark_skewext as skewext


def main() -> None:
    builder = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", 2)
    builder = builder.config("spark.sql.warehouse.dir", mkdtemp())
    spark = builder.config("spark.ui.enabled", False).getOrCreate()
    assert not skewext.is_enabled(spark)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("once")
        check_joins(spark)
    assert [str(each.message) for each in said if "chain of Spark's own joins" in str(each.message)]

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("once")
        check_skew_joins(spark)
    assert [str(each.message) for each in said if "Spark's own join" in str(each.message)]
    check_buckets(spark)
    assert checked_by_notebook(spark) == [
        "the extension is in the session",
        "multi_full_join is one operator",
        "Spark's own joins are rewritten",
        "skew_join by its technique",
        "skew_report",
        "query_report",
    ]

    a, b, _ = inputs(spark)
    warnings.simplefilter("ignore")
    fails(PySparkRuntimeError, "which explain needs", lambda: skewext.explain(a))
    fails(PySparkRuntimeError, "which skew_report needs", lambda: skewext.skew_report(a, "k"))
    fails(PySparkRuntimeError, "which query_report needs", skewext.query_report)
    fails(
        PySparkValueError,
        "have two columns named 'v'",
        lambda: skewext.multi_full_join(a, b, on="k", suffixes=["", ""]),
    )
    fails(
        PySparkValueError,
        "has the name of a column",
        lambda: skewext.multi_full_join(a, b, on="k", indicator="V"),
    )
    spark.stop()
    print("all as it should be")


if __name__ == "__main__":
    main()
