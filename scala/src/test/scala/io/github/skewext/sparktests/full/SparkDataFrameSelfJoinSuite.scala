package io.github.skewext.sparktests.full

import io.github.skewext.sparktests.SparkSuite

import org.apache.spark.SparkConf
import org.apache.spark.sql.DataFrameSelfJoinSuite

/** Spark's own tests of joins of a table with itself, none broadcast. */
class SparkDataFrameSelfJoinSuite extends DataFrameSelfJoinSuite with SparkSuite {

  override def sparkConf: SparkConf =
    super.sparkConf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
}
