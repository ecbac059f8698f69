package io.github.skewext.sparktests.full

import io.github.skewext.SkewExtensions
import io.github.skewext.platform.SkewConf
import org.scalactic.source.Position
import org.scalatest.Tag

import org.apache.spark.SparkConf
import org.apache.spark.sql.execution.adaptive.AdaptiveQueryExecSuite

/**
 * Spark's own tests of adaptive execution, with the extension loaded. They look for sort-merge joins
 * in plans, so joins of two sides stay Spark's.
 */
class SparkAdaptiveQueryExecSuite extends AdaptiveQueryExecSuite {

  override def sparkConf: SparkConf =
    super.sparkConf
      .set("spark.sql.extensions", classOf[SkewExtensions].getName)
      .set(SkewConf.JOIN_ENABLED.key, "false")

  // It warns of the threads of Spark's own pools.
  override protected def doThreadPostAudit(): Unit = ()

  override protected def test(name: String, tags: Tag*)(body: => Any)(implicit
      position: Position): Unit =
    if (!SparkAdaptiveQueryExecSuite.otherwise.contains(name)) super.test(name, tags: _*)(body)
}

object SparkAdaptiveQueryExecSuite {

  /** What is meant to be otherwise, or not to be tested here. */
  private val otherwise = Set(
    // Counts sort-merge joins; two that Spark leaves whole become one of ours.
    "SPARK-37652: optimize skewed join through union",
    // Wants a log level that our tests do not have; it fails without the extension, too.
    "Logging plan changes for AQE")
}
