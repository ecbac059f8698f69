package org.apache.spark.sql.skewext

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.physical.{KeyGroupedPartitioning, Partitioning}
import org.apache.spark.sql.catalyst.util.InternalRowComparableWrapper
import org.apache.spark.sql.connector.read.HasPartitionKey
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec
import org.apache.spark.sql.types.DataType

/** Spark's partitioning by the values of a table's storage. Spark 4.2 has another class for it. */
object KeyedPartitions {

  /** The expressions by which rows are partitioned. */
  def unapply(partitioning: Partitioning): Option[Seq[Expression]] = partitioning match {
    case p: KeyGroupedPartitioning => Some(p.expressions)
    case _ => None
  }

  def values(partitioning: Partitioning): Option[PartitionValues] = partitioning match {
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
}
