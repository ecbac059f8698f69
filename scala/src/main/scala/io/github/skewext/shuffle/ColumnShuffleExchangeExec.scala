package io.github.skewext.shuffle

import java.nio.ByteOrder

import io.github.skewext.rules.LogicalLinks

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.QueryStageExec
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec
import org.apache.spark.sql.execution.exchange.{ShuffleExchangeExec, ShuffleOrigin}
import org.apache.spark.sql.skewext.{BlockShuffleDependency, PlannedExchange, ShuffleCodec, ShuffleMetrics, ShuffleService}
import org.apache.spark.{ShuffleDependency, TaskContext}

/**
 * An exchange that writes columns instead of rows. It takes the batches of a scan below, so no row
 * is built, and there are fewer bytes to compress and to write. Its consumers read rows. All steps
 * between are Spark's, to which a block of columns is a record.
 *
 * It is a transition to rows, so that Spark inserts none below it.
 */
case class ColumnShuffleExchangeExec(
    override val outputPartitioning: HashPartitioning,
    child: SparkPlan,
    shuffleOrigin: ShuffleOrigin,
    advisoryPartitionSize: Option[Long])
    extends PlannedExchange
    with ColumnarToRowTransition {

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
        ofRows(child),
        shuffleOrigin,
        advisoryPartitionSize)).canonicalized

  private def ofRows(plan: SparkPlan): SparkPlan = plan match {
    case select: ColumnarFilterProjectExec => select.ofRows(ofRows(select.child))
    case node if node.exists(_.isInstanceOf[ColumnarFilterProjectExec]) =>
      node.withNewChildren(node.children.map(ofRows))
    case columns => ColumnarToRowExec(columns)
  }

  @transient lazy val shuffleDependency: ShuffleDependency[Int, InternalRow, InternalRow] = {
    tellPartitions(numPartitions)
    BlockShuffleDependency(
      blocks,
      numPartitions,
      new ColumnBlockSerializer(child.output.map(_.dataType)),
      writeMetrics)
      .asInstanceOf[ShuffleDependency[Int, InternalRow, InternalRow]]
  }

  private def blocks: RDD[Product2[Int, ByteBuilder]] = {
    // The closure must not contain the plan.
    val output = child.output
    val partitioning = outputPartitioning
    val (metrics, dataSize) = (writeMetrics, this.dataSize)
    // Another manager may keep records as objects, so Spark copies rows for it.
    val copies = !ShuffleService.isBuiltin
    child.executeColumnar().mapPartitions { batches =>
      val context = TaskContext.get()
      val routes = BatchPartitioner.of(partitioning, output)
      val runs = new PartitionedColumnBuffer(
        output.map(_.dataType),
        partitioning.numPartitions,
        routes,
        ShuffleCodec.compressed)
      new ColumnBlocks(
        batches,
        runs,
        ShuffleMetrics.written(context, metrics),
        dataSize,
        copies,
        context)
    }
  }

  override protected def rowsOf(read: ShuffledRowRDD): RDD[InternalRow] =
    new ColumnShuffledRDD(read, readMetrics)

  override protected def withNewChildInternal(newChild: SparkPlan): ColumnShuffleExchangeExec =
    copy(child = newChild)
}

object ColumnShuffleExchangeExec {

  /** Distinguishes it from Spark's exchange in a plan. */
  val Mark = "by column"

  /**
   * Replaces an exchange of Spark's if its rows arrive as columns that a block supports. Otherwise
   * returns the reason.
   *
   * @param child returns the rows of the exchange's child
   */
  def insteadOf(
      shuffle: ShuffleExchangeExec,
      child: SparkPlan): Either[RowShuffleReason.Detailed, ColumnShuffleExchangeExec] =
    shuffle.outputPartitioning match {
      case byHash: HashPartitioning =>
        obstacle(byHash, child).toLeft(
          LogicalLinks.replacing(shuffle)(
            ColumnShuffleExchangeExec(
              byHash,
              child,
              shuffle.shuffleOrigin,
              shuffle.advisoryPartitionSize)))
      case _ => Left(RowShuffleReason.NoBatches.given)
    }

  private def obstacle(
      byHash: HashPartitioning,
      child: SparkPlan): Option[RowShuffleReason.Detailed] = {
    // Spark inserts no transition between rows and columns below this exchange.
    def ofRows = child.find(n => !n.supportsColumnar && n.children.forall(_.supportsColumnar))
    def otherType = child.output.map(_.dataType).find(ColumnCell.kindOf(_).isEmpty)
    if (!child.collectLeaves().forall(givesBatches)) {
      Some(RowShuffleReason.NoBatches.given)
    } else if (ofRows.isDefined) {
      Some(RowShuffleReason.RowOperator(ofRows.get.nodeName))
    } else if (otherType.isDefined) {
      Some(RowShuffleReason.ColumnType(otherType.get.typeName))
    } else {
      limit(byHash.numPartitions, child.output.size, ByteOrder.nativeOrder)
    }
  }

  /** Columns of other nodes may be on another device. */
  private def givesBatches(leaf: SparkPlan): Boolean = leaf match {
    case stage: QueryStageExec => givesBatches(stage.plan)
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
