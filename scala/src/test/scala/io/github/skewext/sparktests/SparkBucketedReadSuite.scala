package io.github.skewext.sparktests

import org.apache.spark.sql.sources.BucketedReadWithoutHiveSupportSuite

/** Spark's own tests of reading tables by bucket. */
class SparkBucketedReadSuite extends BucketedReadWithoutHiveSupportSuite with SparkSuite {

  override protected def leftOut: Map[String, String] = Map(
    "check sort and shuffle when bucket and sort columns are join keys" ->
      "wants a sort where a bucket has several sorted files, which are merged instead")
}
