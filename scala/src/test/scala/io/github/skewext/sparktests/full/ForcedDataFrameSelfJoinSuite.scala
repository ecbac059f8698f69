package io.github.skewext.sparktests.full

import io.github.skewext.sparktests.RewriteForced

import org.apache.spark.SparkConf
import org.apache.spark.sql.DataFrameSelfJoinSuite

/** Spark's own tests of joins of a table with itself, with all of them rewritten, none broadcast. */
class ForcedDataFrameSelfJoinSuite extends DataFrameSelfJoinSuite with RewriteForced {

  override def sparkConf: SparkConf =
    super.sparkConf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
}
