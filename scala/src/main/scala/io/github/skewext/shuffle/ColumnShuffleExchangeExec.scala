package io.github.skewext.shuffle

import java.nio.ByteOrder

import io.github.skewext.platform.LogicalLinks

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.QueryStageExec
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec
import org.apache.spark.sql.execution.exchange.{ShuffleExchangeExec, ShuffleOrigin}
import org.apache.spark.sql.skewext.{BlockShuffleDependency, PlannedExchange, ShuffleInternals, ShuffleService}
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.{ShuffleDependency, TaskContext}

/**
 * An exchange that writes columns instead of rows, so that there are fewer bytes to compress and to
 * write. Its consumers read rows. All steps between are Spark's, to which a block of columns is a
 * record.
 */
abstract class ColumnShuffleExchangeExec extends PlannedExchange {

  protected def byHash: HashPartitioning

  /** The rows of the child. */
  protected def batches: RDD[ColumnarBatch]

  /** The child of Spark's exchange of the same rows. */
  protected def ofRows: SparkPlan

  override def outputPartitioning: HashPartitioning = byHash

  override protected def mark: String = ColumnShuffleExchangeExec.Mark

  /**
   * It returns the same rows as Spark's own, so that Spark can reuse either in place of the other.
   * When Spark looks for that, its own exchange has transitions to rows and generated code below
   * it.
   */
  override protected def doCanonicalize(): SparkPlan =
    CollapseCodegenStages()(
      ShuffleExchangeExec(
        outputPartitioning,
        ofRows,
        shuffleOrigin,
        advisoryPartitionSize)).canonicalized

  @transient lazy val shuffleDependency: ShuffleDependency[Int, InternalRow, InternalRow] = {
    tellPartitions(numPartitions)
    BlockShuffleDependency(
      blocks,
      numPartitions,
      new ColumnBlockSerializer(child.output.map(_.dataType)),
      writeMetrics,
      // A task of several partitions begins with the next one when it has written blocks.
      keepsMemory = !child.exists(_.isInstanceOf[CoalesceExec]))
      .asInstanceOf[ShuffleDependency[Int, InternalRow, InternalRow]]
  }

  private def blocks: RDD[Product2[Int, ByteBuilder]] = {
    // The closure must not contain the plan.
    val output = child.output
    val partitioning = byHash
    val (metrics, dataSize) = (writeMetrics, this.dataSize)
    // Another manager may keep records as objects, so Spark copies rows for it.
    val copies = !ShuffleService.isBuiltin
    this.batches.mapPartitions { batches =>
      val context = TaskContext.get()
      val routes = BatchPartitioner.of(partitioning, output)
      val runs = new PartitionedColumnBuffer(
        output.map(_.dataType),
        partitioning.numPartitions,
        routes,
        ShuffleInternals.compressedSize)
      new ColumnBlocks(
        batches,
        runs,
        ShuffleInternals.countWritten(context, metrics),
        dataSize,
        copies,
        context)
    }
  }

  override protected def rowsOf(read: ShuffledRowRDD): RDD[InternalRow] =
    new ColumnShuffledRDD(read, readMetrics)
}

object ColumnShuffleExchangeExec {

  /** Distinguishes it from Spark's exchange in a plan. */
  val Mark = "by column"

  /**
   * Replaces an exchange of Spark's if a block supports its columns. Otherwise returns the reason.
   *
   * @param batches returns the rows of the exchange's child as batches, if all of its nodes do
   */
  def insteadOf(
      shuffle: ShuffleExchangeExec,
      batches: SparkPlan): Either[RowShuffleReason.Detailed, ColumnShuffleExchangeExec] =
    shuffle.outputPartitioning match {
      case byHash: HashPartitioning =>
        val origin = shuffle.shuffleOrigin
        val size = shuffle.advisoryPartitionSize
        obstacle(byHash, shuffle.child).toLeft(
          LogicalLinks.replacing(shuffle)(
            if (givesBatches(batches)) ColumnShuffleOfBatchesExec(byHash, batches, origin, size)
            else ColumnShuffleOfRowsExec(byHash, shuffle.child, origin, size)))
      case other =>
        Left(RowShuffleReason.NotByHash(other.getClass.getSimpleName.stripSuffix("$")))
    }

  private def obstacle(
      byHash: HashPartitioning,
      child: SparkPlan): Option[RowShuffleReason.Detailed] =
    child.output.map(_.dataType).find(ColumnCell.kindOf(_).isEmpty) match {
      case Some(other) => Some(RowShuffleReason.ColumnType(other.typeName))
      case None => limit(byHash.numPartitions, child.output.size, ByteOrder.nativeOrder)
    }

  /** Spark inserts no transition between rows and columns below an exchange of batches. */
  private def givesBatches(plan: SparkPlan): Boolean =
    if (plan.children.isEmpty) leafGivesBatches(plan)
    else plan.supportsColumnar && plan.children.forall(givesBatches)

  /** Columns of other nodes may be on another device. */
  private def leafGivesBatches(leaf: SparkPlan): Boolean = leaf match {
    case stage: QueryStageExec => leafGivesBatches(stage.plan)
    case _: FileSourceScanExec | _: InMemoryTableScanExec | _: BatchScanExec =>
      leaf.supportsColumnar
    case _ => false
  }

  /**
   * The limit that an exchange of so many partitions exceeds, if any. Each column of a block has some
   * bytes that describe its encoding.
   */
  private[skewext] def limit(
      partitions: Int,
      columns: Int,
      order: ByteOrder): Option[RowShuffleReason.Detailed] =
    if (partitions.toLong * math.max(1, columns) > MostRuns) {
      Some(RowShuffleReason.ManyRuns(s"$columns columns, $partitions partitions"))
    } else if (order != ByteOrder.LITTLE_ENDIAN) {
      // A row stores each value in a word, whose first bytes are the lowest ones only in this byte
      // order.
      Some(RowShuffleReason.BigEndian.given)
    } else {
      None
    }

  private val MostRuns = 16384
}

/** A columnar shuffle of the rows of any operator. */
case class ColumnShuffleOfRowsExec(
    protected val byHash: HashPartitioning,
    child: SparkPlan,
    shuffleOrigin: ShuffleOrigin,
    advisoryPartitionSize: Option[Long])
    extends ColumnShuffleExchangeExec {

  override protected def batches: RDD[ColumnarBatch] = {
    val types = child.output.map(_.dataType)
    child.execute().mapPartitions(new RowBatches(_, types))
  }

  override protected def ofRows: SparkPlan = child

  override protected def withNewChildInternal(newChild: SparkPlan): ColumnShuffleOfRowsExec =
    copy(child = newChild)
}

/**
 * A columnar shuffle of the batches of a scan. It builds no row.
 *
 * It is a transition to rows, so that Spark inserts none below it.
 */
case class ColumnShuffleOfBatchesExec(
    protected val byHash: HashPartitioning,
    child: SparkPlan,
    shuffleOrigin: ShuffleOrigin,
    advisoryPartitionSize: Option[Long])
    extends ColumnShuffleExchangeExec
    with ColumnarToRowTransition {

  override protected def batches: RDD[ColumnarBatch] = child.executeColumnar()

  override protected def ofRows: SparkPlan = ofRows(child)

  private def ofRows(plan: SparkPlan): SparkPlan = plan match {
    case select: ColumnarFilterProjectExec => select.ofRows(ofRows(select.child))
    case node if node.exists(_.isInstanceOf[ColumnarFilterProjectExec]) =>
      node.withNewChildren(node.children.map(ofRows))
    case columns => ColumnarToRowExec(columns)
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ColumnShuffleOfBatchesExec =
    copy(child = newChild)
}
