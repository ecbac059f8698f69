package io.github.skewext.sparktests.full

import io.github.skewext.platform.SkewConf
import io.github.skewext.sparktests.SparkSuite

import org.apache.spark.SparkConf
import org.apache.spark.sql.sources.BucketedReadWithoutHiveSupportSuite

/** Spark's own tests of reading tables by bucket. They look for Spark's joins in plans. */
class BucketedReadsSuite extends BucketedReadWithoutHiveSupportSuite with SparkSuite {

  override def sparkConf: SparkConf = super.sparkConf.set(SkewConf.JOIN_ENABLED.key, "false")

  override protected def leftOut: Map[String, String] = Map(
    "check sort and shuffle when bucket and sort columns are join keys" ->
      "wants a sort where a bucket has several sorted files, which are merged instead",
    "bucket coalescing is not satisfied" ->
      "wants a sort where a bucket has several sorted files, too",
    "bucket coalescing eliminates shuffle" ->
      "wants a sort of buckets that are read together, whose files are merged instead",
    "bucket coalescing is applied when join expressions match with partitioning expressions" ->
      "has a range join, and Spark knows only its nested loop as a node that keeps buckets")
}
