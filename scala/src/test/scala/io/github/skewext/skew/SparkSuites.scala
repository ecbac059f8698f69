package io.github.skewext.skew

import io.github.skewext.SkewExtensions

import org.apache.spark.SparkConf
import org.apache.spark.sql.execution.adaptive.AdaptiveQueryExecSuite

/** Spark's own tests of adaptive execution, with the extension loaded. */
class SparkAdaptiveQueryExecSuite extends AdaptiveQueryExecSuite {
  override protected def sparkConf: SparkConf =
    super.sparkConf.set("spark.sql.extensions", classOf[SkewExtensions].getName)
}
