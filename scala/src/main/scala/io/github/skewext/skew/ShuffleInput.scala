package io.github.skewext.skew

import io.github.skewext.multijoin.InputRole.Required
import io.github.skewext.multijoin.{InputRole, MultiFullJoinExec}

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.exchange._
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, ShuffledJoin}
import org.apache.spark.sql.execution.window.{WindowExec, WindowGroupLimitExec}
import org.apache.spark.sql.skewext.ShuffleBlocks

/**
 * An input of a join that comes out of one shuffle, or of several that are partitioned and read
 * alike, as where it is a join itself.
 */
case class ShuffleInput(plan: SparkPlan, shuffles: Seq[ShuffleInput.Shuffle]) {

  def ranges: Seq[CoalescedPartitionSpec] = shuffles.head.ranges

  /** The size of each partition, in all shuffles. */
  val bytes: IndexedSeq[Long] = shuffles.map(_.bytes).reduce { (a, b) =>
    a.zip(b).map { case (x, y) => x + y }
  }

  /**
   * The shuffle that is sliced where the input is: that with the largest partition. What is there
   * twice cannot be told apart.
   */
  private val sliced: Option[ShuffleInput.Shuffle] = shuffles
    .filter(s => s.sliceable && shuffles.count(_.stage eq s.stage) == 1)
    .reduceOption((a, b) => if (b.bytes.max > a.bytes.max) b else a)

  def toSkewInput(role: InputRole, keys: Seq[Expression]): SkewInput = {
    val several = shuffles.size > 1
    val whole = SkewInput(
      role,
      bytes,
      blocks = _ => Nil,
      sliceable = false,
      cuttable = false,
      wholeBytes = if (several) Some(bytes) else None,
      weights =
        sketch.map(s => RowWeights.of(bytes, s.sampled, s.every)).getOrElse(IndexedSeq.empty))
    sliced.fold(whole) { shuffle =>
      // What is divided by must be there again when a map task runs again. And tasks that share a
      // block do all that is to be done with it, which is little if it is not joined.
      val cuttable = !several && RowShare.possible(plan.output, keys) &&
        StableRows.areIn(shuffle.stage.plan)
      whole.copy(
        blocks = shuffle.blocks,
        sliceable = true,
        wholeBytes = whole.wholeBytes.map(_.zip(shuffle.bytes).map { case (all, s) => all - s }),
        cuttable = cuttable,
        inRanges = cuttable && SplitReads.canBeInRanges(plan, shuffle.stage))
    }
  }

  /** What is known of how often its keys occur: only if each of its rows is one of one shuffle. */
  def sketch: Option[KeySketch] = shuffles match {
    case Seq(shuffle) if shuffle.sliceable => shuffle.sketch
    case _ => None
  }

  /** How large its rows are in memory, on average: one of each shuffle together. */
  def rowBytes: Double = shuffles.map(_.rowBytes).sum

  /** The input with other reads. */
  def reading(specs: Seq[ShufflePartitionSpec]): SparkPlan = {
    def read(stage: SparkPlan): SparkPlan =
      AQEShuffleReadExec(stage, specsOf(shuffles.find(_.stage eq stage).get, specs))
    def replace(node: SparkPlan): SparkPlan = node match {
      case r: AQEShuffleReadExec => read(r.child)
      case s: ShuffleQueryStageExec => read(s)
      case ShuffleInput.MadeOf(parts) =>
        node.withNewChildren(node.children.map { child =>
          if (parts.exists(_._1 eq child)) replace(child) else child
        })
    }
    replace(plan)
  }

  /** Every slice of the one shuffle meets all that the others have of the partition. */
  private def specsOf(
      shuffle: ShuffleInput.Shuffle,
      specs: Seq[ShufflePartitionSpec]): Seq[ShufflePartitionSpec] = {
    def whole(start: Int, end: Int) =
      CoalescedPartitionSpec(start, end, shuffle.bytes.slice(start, end).sum)
    specs.map {
      case part: PartialReducerPartitionSpec if sliced.exists(_ eq shuffle) => part
      case PartialReducerPartitionSpec(p, _, _, _) => whole(p, p + 1)
      case CoalescedPartitionSpec(start, end, _) => whole(start, end)
      case other => other
    }
  }
}

object ShuffleInput {

  /**
   * One of the shuffles that an input is made of.
   *
   * @param ranges the partitions that each task reads
   * @param sliceable whether the input made of a part of its rows is a part of the input
   */
  case class Shuffle(
      stage: ShuffleQueryStageExec,
      ranges: Seq[CoalescedPartitionSpec],
      sliceable: Boolean) {

    /** The size of each partition; of no rows where no map task ran. */
    val bytes: IndexedSeq[Long] = stage.mapStats
      .map(_.bytesByPartitionId.toIndexedSeq)
      .getOrElse(IndexedSeq.fill(stage.shuffle.numPartitions)(0L))

    def sketch: Option[KeySketch] = stage.shuffle.child match {
      case counted: KeySketchExec => counted.sketch
      case WholeStageCodegenExec(counted: KeySketchExec) => counted.sketch
      case _ => None
    }

    def rowBytes: Double = {
      val shuffled = stage.shuffle.runtimeStatistics
      shuffled.rowCount
        .filter(_ > 0)
        .map(n => shuffled.sizeInBytes.toDouble / n.toDouble)
        .getOrElse(0.0)
    }

    def blocks(partition: Int): Seq[MapBlocks] = {
      val sizes = ShuffleBlocks.sizes(stage.mapStats.get.shuffleId, partition)
      if (sizes.nonEmpty && sizes.forall(_ >= 0)) {
        sizes.zipWithIndex.map { case (size, m) => MapBlocks(m, m + 1, size) }
      } else {
        Seq(MapBlocks(0, stage.shuffle.numMappers, bytes(partition)))
      }
    }
  }

  /** The shuffles that the rows of the plan are made of, if they are, and partition by partition. */
  def of(plan: SparkPlan): Either[SkewReason, ShuffleInput] = {
    def find(node: SparkPlan, sliceable: Boolean): Either[SkewReason, Seq[Shuffle]] = node match {
      case stage: ShuffleQueryStageExec if isSplittable(stage) =>
        val whole = (0 until stage.shuffle.numPartitions).map(p => CoalescedPartitionSpec(p, p + 1))
        Right(Seq(Shuffle(stage, whole, sliceable)))
      case AQEShuffleReadExec(stage: ShuffleQueryStageExec, specs) if isSplittable(stage) =>
        val ranges = specs.collect { case c: CoalescedPartitionSpec => c }
        if (ranges.size == specs.size) Right(Seq(Shuffle(stage, ranges, sliceable)))
        else Left(SkewReason.SplitBySpark)
      case MadeOf(parts) =>
        // Every task of a split partition makes the rows anew, and they must be the same ones.
        if (StableRows.areMadeBy(node)) {
          val found = parts.map { case (child, linear) => find(child, sliceable && linear) }
          found
            .collectFirst { case Left(reason) => Left(reason) }
            .getOrElse(Right(found.flatMap(_.right.get)))
        } else {
          Left(SkewReason.InputNotDeterministic)
        }
      case _ => Left(SkewReason.InputNotShuffled)
    }
    find(plan, sliceable = true).right.flatMap { shuffles =>
      if (shuffles.map(readAs).distinct.size == 1) Right(ShuffleInput(plan, shuffles))
      else Left(SkewReason.InputsDiffer)
    }
  }

  /** The partitions of a shuffle, and how they are read. */
  def readAs(shuffle: Shuffle): (Int, Seq[(Int, Int)]) =
    (shuffle.bytes.size, shuffle.ranges.map(r => (r.startReducerIndex, r.endReducerIndex)))

  /**
   * An input of a split join with other reads; nodes may have come in between.
   *
   * @param specs parts only of an input that is made of one shuffle
   */
  def withReads(input: SparkPlan, specs: Seq[ShufflePartitionSpec]): SparkPlan =
    input.transformUp { case read: AQEShuffleReadExec => AQEShuffleReadExec(read.child, specs) }

  /**
   * What an input of a split join reads; looked for again, as nodes may have come in between. Of
   * several shuffles each task reads the same partitions, of one perhaps a part.
   */
  def reads(input: SparkPlan): Seq[ShufflePartitionSpec] = {
    def all(node: SparkPlan): Seq[AQEShuffleReadExec] = node match {
      case read: AQEShuffleReadExec => Seq(read)
      case _ => node.children.flatMap(all)
    }
    def unexpected() = throw new IllegalStateException(
      s"The shuffles of an input of a split join are not read alike:\n$input")
    val specs = all(input).map(_.partitionSpecs)
    if (specs.map(_.size).distinct.size != 1) unexpected()
    specs.transpose.map { ofTask =>
      val parts = ofTask.collect { case part: PartialReducerPartitionSpec => part }
      val partitions = ofTask.map {
        case CoalescedPartitionSpec(start, end, _) => (start, end)
        case PartialReducerPartitionSpec(p, _, _, _) => (p, p + 1)
        case _ => unexpected()
      }
      if (partitions.distinct.size != 1 || parts.size > 1) unexpected()
      parts.headOption.getOrElse(ofTask.head)
    }
  }

  /** A user's `repartition` by the key as well: how many tasks read it is not seen by anybody. */
  private def isSplittable(stage: ShuffleQueryStageExec): Boolean =
    stage.isMaterialized && stage.shuffle.outputPartitioning != SinglePartition &&
      (stage.shuffle.shuffleOrigin match {
        case ENSURE_REQUIREMENTS | REPARTITION_BY_COL | REPARTITION_BY_NUM => true
        case _ => false
      })

  /**
   * A node that makes each partition of its rows of the same partition of some children; and of each
   * child, whether what is made of a part of the child's rows is a part of what is made of all.
   */
  object MadeOf {
    def unapply(plan: SparkPlan): Option[Seq[(SparkPlan, Boolean)]] = plan match {
      case p: ProjectExec => Some(Seq(p.child -> true))
      case f: FilterExec => Some(Seq(f.child -> true))
      case g: GenerateExec => Some(Seq(g.child -> true))
      case s: SortExec if !s.global => Some(Seq(s.child -> true))
      case a: BaseAggregateExec => Some(Seq(a.child -> false))
      case w: WindowExec => Some(Seq(w.child -> false))
      case w: WindowGroupLimitExec => Some(Seq(w.child -> false))
      case j: BroadcastHashJoinExec =>
        j.buildSide match {
          case BuildLeft => Some(Seq(j.right -> true))
          case BuildRight => Some(Seq(j.left -> true))
        }
      case j: ShuffledJoin =>
        val (left, right) = j.joinType match {
          case _: InnerLike => (true, true)
          case LeftOuter | LeftExistence(_) => (true, false)
          case RightOuter => (false, true)
          case _ => (false, false)
        }
        Some(Seq(j.left -> left, j.right -> right))
      case j: MultiFullJoinExec if j.split.isEmpty =>
        Some(j.children.zip(j.roles.map(_ == Required)))
      case _ => None
    }
  }
}
