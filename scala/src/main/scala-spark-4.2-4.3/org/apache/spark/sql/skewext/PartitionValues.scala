package org.apache.spark.sql.skewext

import scala.annotation.unused

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.catalyst.util.InternalRowComparableWrapper
import org.apache.spark.sql.execution.SparkPlan

/**
 * The expressions by which a table is partitioned in its storage. From Spark 4.2 on, a node above
 * the scan groups partitions of one value. skewext does not use it yet.
 */
case class PartitionValues(by: Seq[Expression], values: Seq[InternalRowComparableWrapper]) {
  def sorted: Seq[InternalRowComparableWrapper] = values
}

object PartitionValues {
  def of(@unused plan: SparkPlan): Option[PartitionValues] = None

  def columns(@unused partitioning: Partitioning): Option[Seq[Attribute]] = None
}
