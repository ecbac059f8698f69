package org.apache.spark.sql.skewext

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, RowOrdering}
import org.apache.spark.sql.catalyst.plans.physical.{Partitioning, PartitioningCollection}
import org.apache.spark.sql.catalyst.util.InternalRowComparableWrapper
import org.apache.spark.sql.execution.SparkPlan

/**
 * The expressions by which a table is partitioned in its storage, and its partition values in the
 * order of the rows' partitions. From Spark 4.2 on, several partitions may have one value.
 */
case class PartitionValues(by: Seq[Expression], values: Seq[InternalRowComparableWrapper]) {

  /** An order that depends only on the values. */
  def sorted: Seq[InternalRowComparableWrapper] = values.sorted(
    RowOrdering
      .createNaturalAscendingOrdering(by.map(_.dataType))
      .on((value: InternalRowComparableWrapper) => value.row))
}

object PartitionValues {

  /** The partitions that a plan reports, if no node above the scan has changed them. */
  def of(plan: SparkPlan): Option[PartitionValues] = KeyedPartitions.values(plan.outputPartitioning)

  /** The columns of the partition values that a partitioning has, be it one of several. */
  def columns(partitioning: Partitioning): Option[Seq[Attribute]] = partitioning match {
    case KeyedPartitions(by) => Some(by.flatMap(_.references).distinct)
    case PartitioningCollection(all) => all.flatMap(columns).headOption
    case _ => None
  }
}
