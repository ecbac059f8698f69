package org.apache.spark.sql.skewext

import scala.annotation.unused

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.util.InternalRowComparableWrapper
import org.apache.spark.sql.execution.SparkPlan

/**
 * By what a table is partitioned in its storage. From Spark 4.2 on a node above the scan puts partitions of
 * one value together, which is not made use of yet.
 */
case class PartitionValues(by: Seq[Expression], values: Seq[InternalRowComparableWrapper]) {
  def sorted: Seq[InternalRowComparableWrapper] = values
}

object PartitionValues {
  def of(@unused plan: SparkPlan): Option[PartitionValues] = None
}
