package org.apache.spark.sql.skewext

import scala.annotation.unused

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, RowOrdering}
import org.apache.spark.sql.catalyst.plans.physical.{KeyedPartitioning, Partitioning, PartitioningCollection}
import org.apache.spark.sql.catalyst.util.InternalRowComparableWrapper
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.types.DataType

/**
 * The expressions by which a table is partitioned in its storage, and the partition value of each
 * partition of the rows. Until Spark 4.1, another class has them, and each value occurs once.
 */
case class PartitionValues(by: Seq[Expression], values: Seq[InternalRowComparableWrapper]) {

  /** An order that depends only on the values. */
  def sorted: Seq[InternalRowComparableWrapper] = values.sorted(
    RowOrdering
      .createNaturalAscendingOrdering(by.map(_.dataType))
      .on((value: InternalRowComparableWrapper) => value.row))
}

object PartitionValues {

  /** The partitions that a plan reports. Files of one value may be several partitions. */
  def of(plan: SparkPlan): Option[PartitionValues] = plan.outputPartitioning match {
    case p: KeyedPartitioning if SparkShims.hasValues(p) =>
      Some(PartitionValues(p.expressions, p.partitionKeys))
    case _ => None
  }

  /** The same plan with a partition for each split of its scan, which it has already. */
  def bySplit(plan: SparkPlan): Option[SparkPlan] = Some(plan)

  /** The value of each split, in the order of the partitions of such a plan. */
  def ofSplits(plan: SparkPlan, @unused types: Seq[DataType]): Seq[InternalRowComparableWrapper] =
    of(plan).map(_.values).getOrElse(Nil)

  /** The columns of the partition values that a partitioning has, be it one of several. */
  def columns(partitioning: Partitioning): Option[Seq[Attribute]] = partitioning match {
    case p: KeyedPartitioning => Some(p.expressions.flatMap(_.references).distinct)
    case PartitioningCollection(all) => all.flatMap(columns).headOption
    case _ => None
  }
}
