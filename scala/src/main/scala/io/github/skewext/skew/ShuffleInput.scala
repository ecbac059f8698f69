package io.github.skewext.skew

import io.github.skewext.multijoin.InputRole

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight}
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.exchange._
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec
import org.apache.spark.sql.skewext.ShuffleBlocks

/**
 * An input of a join that comes out of one shuffle.
 *
 * @param ranges the partitions that each task reads
 * @param byRow whether each of its rows is made of one row of the shuffle; it is not if it is
 *              aggregated in between
 */
case class ShuffleInput(
    plan: SparkPlan,
    stage: ShuffleQueryStageExec,
    ranges: Seq[CoalescedPartitionSpec],
    byRow: Boolean) {

  /** The size of each partition; of no rows where no map task ran. */
  val bytes: IndexedSeq[Long] = stage.mapStats
    .map(_.bytesByPartitionId.toIndexedSeq)
    .getOrElse(IndexedSeq.fill(stage.shuffle.numPartitions)(0L))

  def toSkewInput(role: InputRole, keys: Seq[Expression]): SkewInput = SkewInput(
    role,
    bytes,
    blocks,
    sliceable = byRow,
    // What is divided by must be there again when a map task runs again.
    cuttable = RowShare.possible(plan.output, keys) && StableRows.areIn(stage.plan))

  private def blocks(partition: Int): Seq[MapBlocks] = {
    val sizes = ShuffleBlocks.sizes(stage.mapStats.get.shuffleId, partition)
    if (sizes.nonEmpty && sizes.forall(_ >= 0)) {
      sizes.zipWithIndex.map { case (size, m) => MapBlocks(m, m + 1, size) }
    } else {
      Seq(MapBlocks(0, stage.shuffle.numMappers, bytes(partition)))
    }
  }

  /** The input with other reads. */
  def reading(specs: Seq[ShufflePartitionSpec]): SparkPlan = {
    def replace(node: SparkPlan): SparkPlan = node match {
      case read: AQEShuffleReadExec => AQEShuffleReadExec(read.child, specs)
      case s: ShuffleQueryStageExec => AQEShuffleReadExec(s, specs)
      case ShuffleInput.Made(child, _) =>
        node.withNewChildren(node.children.map(c => if (c eq child) replace(c) else c))
    }
    replace(plan)
  }
}

object ShuffleInput {

  /** The one shuffle that the rows of the plan are made of, if they are. */
  def of(plan: SparkPlan): Either[SkewReason, ShuffleInput] = {
    def find(node: SparkPlan, byRow: Boolean): Either[SkewReason, ShuffleInput] = node match {
      case stage: ShuffleQueryStageExec if isSplittable(stage) =>
        val whole = (0 until stage.shuffle.numPartitions).map(p => CoalescedPartitionSpec(p, p + 1))
        Right(ShuffleInput(plan, stage, whole, byRow))
      case AQEShuffleReadExec(stage: ShuffleQueryStageExec, specs) if isSplittable(stage) =>
        val ranges = specs.collect { case c: CoalescedPartitionSpec => c }
        if (ranges.size == specs.size) Right(ShuffleInput(plan, stage, ranges, byRow))
        else Left(SkewReason.SplitBySpark)
      case Made(child, nodeByRow) =>
        // Every task of a split partition makes the rows anew, and they must be the same ones.
        if (StableRows.areMadeBy(node)) find(child, byRow && nodeByRow)
        else Left(SkewReason.InputNotDeterministic)
      case _ => Left(SkewReason.InputNotShuffled)
    }
    find(plan, byRow = true)
  }

  /** An input of a split join with other reads; nodes may have come in between. */
  def withReads(input: SparkPlan, specs: Seq[ShufflePartitionSpec]): SparkPlan =
    input.transformUp { case read: AQEShuffleReadExec => AQEShuffleReadExec(read.child, specs) }

  /** What an input of a split join reads; looked for again, as nodes may have come in between. */
  def reads(input: SparkPlan): Seq[ShufflePartitionSpec] = {
    def all(node: SparkPlan): Seq[AQEShuffleReadExec] = node match {
      case read: AQEShuffleReadExec => Seq(read)
      case _ => node.children.flatMap(all)
    }
    all(input) match {
      case Seq(read) => read.partitionSpecs
      case several =>
        throw new IllegalStateException(
          s"An input of a split join has ${several.size} shuffle reads:\n$input")
    }
  }

  /** A user's `repartition` by the key as well: how many tasks read it is not seen by anybody. */
  private def isSplittable(stage: ShuffleQueryStageExec): Boolean =
    stage.isMaterialized && stage.shuffle.outputPartitioning != SinglePartition &&
      (stage.shuffle.shuffleOrigin match {
        case ENSURE_REQUIREMENTS | REPARTITION_BY_COL | REPARTITION_BY_NUM => true
        case _ => false
      })

  /** A node that makes its rows of those of one child, and whether each of one row. */
  object Made {
    def unapply(plan: SparkPlan): Option[(SparkPlan, Boolean)] = plan match {
      case p: ProjectExec => Some((p.child, true))
      case f: FilterExec => Some((f.child, true))
      case g: GenerateExec => Some((g.child, true))
      case j: BroadcastHashJoinExec =>
        j.buildSide match {
          case BuildLeft => Some((j.right, true))
          case BuildRight => Some((j.left, true))
        }
      case s: SortExec if !s.global => Some((s.child, true))
      case a: BaseAggregateExec => Some((a.child, false))
      case _ => None
    }
  }
}
