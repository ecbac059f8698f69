package io.github.skewext.shuffle

import org.apache.spark.ShuffleDependency
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.{ENSURE_REQUIREMENTS, ShuffleExchangeExec, ShuffleOrigin}
import org.apache.spark.sql.skewext.PlannedExchange

/**
 * Spark's exchange with another serializer, [[BulkRowSerializer]]: the same partitions and the same
 * bytes, with less work per row. Spark's own exchange has no parameter for a serializer.
 */
case class BulkShuffleExchangeExec(
    override val outputPartitioning: Partitioning,
    child: SparkPlan,
    shuffleOrigin: ShuffleOrigin = ENSURE_REQUIREMENTS,
    advisoryPartitionSize: Option[Long] = None)
    extends PlannedExchange {

  override protected def mark: String = BulkShuffleExchangeExec.Mark

  /**
   * It writes the same bytes as Spark's own, so that Spark can reuse either in place of the other.
   */
  override protected def doCanonicalize(): SparkPlan =
    ShuffleExchangeExec(
      outputPartitioning,
      child,
      shuffleOrigin,
      advisoryPartitionSize).canonicalized

  @transient lazy val shuffleDependency: ShuffleDependency[Int, InternalRow, InternalRow] = {
    val dependency = ShuffleExchangeExec.prepareShuffleDependency(
      child.execute(),
      child.output,
      outputPartitioning,
      new BulkRowSerializer(child.output.size, dataSize),
      writeMetrics)
    tellPartitions(dependency.partitioner.numPartitions)
    dependency
  }

  override def numPartitions: Int = shuffleDependency.partitioner.numPartitions

  override protected def withNewChildInternal(newChild: SparkPlan): BulkShuffleExchangeExec =
    copy(child = newChild)
}

object BulkShuffleExchangeExec {

  /** Distinguishes it from Spark's exchange in a plan. */
  val Mark = "bulk rows"
}
