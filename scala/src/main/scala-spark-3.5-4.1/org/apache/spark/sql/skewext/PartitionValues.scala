package org.apache.spark.sql.skewext

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, RowOrdering}
import org.apache.spark.sql.catalyst.plans.physical.{KeyGroupedPartitioning, Partitioning, PartitioningCollection}
import org.apache.spark.sql.catalyst.util.InternalRowComparableWrapper
import org.apache.spark.sql.connector.read.HasPartitionKey
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec
import org.apache.spark.sql.types.DataType

/**
 * The expressions by which a table is partitioned in its storage, and its partition values in the
 * order of the rows' partitions. Spark 4.2 has another class for them.
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
  def of(plan: SparkPlan): Option[PartitionValues] = plan.outputPartitioning match {
    // Several files of one value may be reported as several partitions. The running scan has one
    // for them.
    case p: KeyGroupedPartitioning =>
      val values = p.partitionValues.map(InternalRowComparableWrapper(_, p.expressions))
      Some(PartitionValues(p.expressions, values.distinct))
    case _ => None
  }

  /**
   * The same plan with a partition for each split of its scan. None with filters that are made while
   * the query runs: these leave an unknown number of splits.
   */
  def bySplit(plan: SparkPlan): Option[SparkPlan] = {
    val scans = plan.collect { case scan: BatchScanExec => scan }
    if (scans.size == 1 && scans.head.runtimeFilters.isEmpty) {
      // Scans with other values are different ones to Spark; only by their columns, they are equal.
      Some(plan.transform { case scan: BatchScanExec =>
        scan.copy(spjParams =
          scan.spjParams.copy(keyGroupedPartitioning = None, commonPartitionValues = Some(Nil)))
      })
    } else {
      None
    }
  }

  /** The value of each split, in the order of the partitions of such a plan. */
  def ofSplits(plan: SparkPlan, types: Seq[DataType]): Seq[InternalRowComparableWrapper] =
    for {
      scan <- plan.collect { case scan: BatchScanExec => scan }
      split <- scan.inputPartitions.collect { case split: HasPartitionKey => split }
      // Of a join by some of the partition columns, Spark cuts the values down to these.
      if split.partitionKey().numFields == types.size
    } yield new InternalRowComparableWrapper(split.partitionKey(), types)

  /** The columns of the partition values that a partitioning has, be it one of several. */
  def columns(partitioning: Partitioning): Option[Seq[Attribute]] = partitioning match {
    case p: KeyGroupedPartitioning => Some(p.expressions.flatMap(_.references).distinct)
    case PartitioningCollection(all) => all.flatMap(columns).headOption
    case _ => None
  }
}
