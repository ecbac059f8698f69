package org.apache.spark.sql.skewext

import scala.annotation.unused

import org.apache.spark.sql.catalyst.plans.physical.KeyedPartitioning

/** Code that differs between lines of Spark. Each line has its own object. */
object SparkShims extends Spark4Shims with Until42Shims with Since41Shims with Since42Shims {

  /** Whether each partition has the rows of the value that is given for it. */
  def hasValues(@unused partitioning: KeyedPartitioning): Boolean = true
}
