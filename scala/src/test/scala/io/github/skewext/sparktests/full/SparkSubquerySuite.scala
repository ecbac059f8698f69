package io.github.skewext.sparktests.full

import io.github.skewext.sparktests.SparkSuite

import org.apache.spark.SparkConf
import org.apache.spark.sql.SubquerySuite

/** Spark's own tests of subqueries and none broadcast. */
class SparkSubquerySuite extends SubquerySuite with SparkSuite {

  override def sparkConf: SparkConf =
    super.sparkConf.set("spark.sql.autoBroadcastJoinThreshold", "-1")

  override protected def leftOut: Map[String, String] = Map(
    "SPARK-32290: SingleColumn Null Aware Anti Join Optimize" -> "wants broadcasts, which are off")
}
