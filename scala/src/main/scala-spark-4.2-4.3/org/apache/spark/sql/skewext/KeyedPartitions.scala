package org.apache.spark.sql.skewext

import scala.annotation.unused

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.physical.{KeyedPartitioning, Partitioning}
import org.apache.spark.sql.catalyst.util.InternalRowComparableWrapper
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.types.DataType

/** Spark's partitioning by the values of a table's storage. Until Spark 4.1, another class has it. */
object KeyedPartitions {

  /** The expressions by which rows are partitioned. */
  def unapply(partitioning: Partitioning): Option[Seq[Expression]] = partitioning match {
    case p: KeyedPartitioning => Some(p.expressions)
    case _ => None
  }

  /** Files of one value may be several partitions. */
  def values(partitioning: Partitioning): Option[PartitionValues] = partitioning match {
    case p: KeyedPartitioning if SparkShims.hasValues(p) =>
      Some(PartitionValues(p.expressions, p.partitionKeys))
    case _ => None
  }

  /** The same plan with a partition for each split of its scan, which it has already. */
  def bySplit(plan: SparkPlan): Option[SparkPlan] = Some(plan)

  /** The value of each split, in the order of the partitions of such a plan. */
  def ofSplits(plan: SparkPlan, @unused types: Seq[DataType]): Seq[InternalRowComparableWrapper] =
    PartitionValues.of(plan).map(_.values).getOrElse(Nil)
}
