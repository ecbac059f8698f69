"""What a server that has the extension does."""

from answers import check_joins, fails, inputs
from pyspark.errors import AnalysisException, PySparkTypeError, PySparkValueError
from pyspark.sql import SparkSession

import pyspark_skewext as skewext


def main() -> None:
    builder = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", 2)
    builder = builder.config("spark.ui.enabled", False)
    spark = skewext.configure(builder).getOrCreate()
    assert skewext.is_enabled(spark)
    check_joins(spark)

    a, b, _ = inputs(spark)
    join = skewext.explain(skewext.multi_full_join(a, b, on="k")).joins[0]
    assert join["origin"]["status"] == "asked for", join

    skewed = spark.range(100).selectExpr("if(id % 2 = 0, 7, id) AS user")
    report = skewext.skew_report(skewed, "user", partitions=4)
    assert report.hot_keys[0].key == 7 and report.hot_keys[0].rows.low == 50, report
    both = skewext.skew_report(skewed, "user", other=skewed.where("user < 20"), partitions=4)
    assert both.output is not None and both.hot_keys[0].output_rows.high == 2500, both
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
    fails(PySparkTypeError, "its hint works there", lambda: skewext.skew_join(a, b, "k"))
    fails(PySparkTypeError, "Spark Connect", lambda: skewext.write_bucketed(a, "t", "k", 2))
    fails(PySparkValueError, "progress", lambda: skewext.skew_report(a, "k", progress=print))
    # A name that would end the text of a query.
    odd = a.withColumnRenamed("k", "{k}'\\")
    assert skewext.multi_full_join(odd, odd, on="{k}'\\").columns[0] == "{k}'\\"
    hinted = skewext.explain(a.join(b.hint("skew_join", "broadcast_map"), "k", "full"))
    assert "broadcast_map" in str(hinted), hinted
    spark.stop()
    print("all as it should be")


if __name__ == "__main__":
    main()
