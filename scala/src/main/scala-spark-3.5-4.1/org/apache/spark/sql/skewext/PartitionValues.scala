package org.apache.spark.sql.skewext

import org.apache.spark.sql.catalyst.expressions.{Expression, RowOrdering}
import org.apache.spark.sql.catalyst.plans.physical.KeyGroupedPartitioning
import org.apache.spark.sql.catalyst.util.InternalRowComparableWrapper
import org.apache.spark.sql.execution.SparkPlan

/**
 * By what a table is partitioned in its storage, and the values that it has, one for each partition of
 * the rows, in their order. From Spark 4.2 on there is another class for it.
 */
case class PartitionValues(by: Seq[Expression], values: Seq[InternalRowComparableWrapper]) {

  /** The same order for all who have the same values. */
  def sorted: Seq[InternalRowComparableWrapper] = values.sorted(
    RowOrdering
      .createNaturalAscendingOrdering(by.map(_.dataType))
      .on((value: InternalRowComparableWrapper) => value.row))
}

object PartitionValues {

  /** What the plan says of its partitions, if nothing between it and the scan has made other ones. */
  def of(plan: SparkPlan): Option[PartitionValues] = plan.outputPartitioning match {
    // Where files of one value are partitions by themselves, they are not once the scan runs.
    case p: KeyGroupedPartitioning =>
      val values = p.partitionValues.map(InternalRowComparableWrapper(_, p.expressions))
      Some(PartitionValues(p.expressions, values.distinct))
    case _ => None
  }
}
