package io.github.skewext.skew.split

import io.github.skewext.facts.{MadeOf, StableRows}
import io.github.skewext.join.InputRole
import io.github.skewext.join.exec.AlignPartitionsExec
import io.github.skewext.skew.plan.{InputSizes, KeySketch, RowWeights, SkewInput, SkewReason, Stability}
import io.github.skewext.skew.run.RowShare

import org.apache.spark.sql.catalyst.expressions.{AttributeSet, Expression}
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec
import org.apache.spark.sql.execution.exchange._

/**
 * An input of a join, as the planner of splits sees it: the shuffle or the table that its rows come
 * from, with the sizes of the partitions. If the input is a join itself, it may have
 * several such sources. They have the same partitions, and each task reads the same range of each.
 */
case class PartitionedInput(plan: SparkPlan, sources: Seq[PartitionSource]) {

  def ranges: Seq[CoalescedPartitionSpec] = sources.head.ranges

  /** The size of each partition, in all sources. */
  val bytes: IndexedSeq[Long] = sources.map(_.bytes).reduce { (a, b) =>
    a.zip(b).map { case (x, y) => x + y }
  }

  /**
   * The source to slice if the input is sliced: the one with the largest partition. A source that
   * occurs twice is excluded, because its two occurrences are indistinguishable.
   */
  private val sliced: Option[PartitionSource] = sources
    .filter(s => s.sliceable && sources.count(_.node eq s.node) == 1)
    .reduceOption((a, b) => if (b.bytes.max > a.bytes.max) b else a)

  def toSkewInput(role: InputRole, keys: Seq[Expression]): SkewInput = {
    val several = sources.size > 1
    lazy val keysStay =
      StableRows.areIn(plan, AttributeSet.fromAttributeSets(keys.map(_.references)))
    lazy val rowsStay = StableRows.areIn(plan)
    val sizes = InputSizes(
      bytes,
      wholeBytes = if (several) Some(bytes) else None,
      weights = RowWeights.unpacked(
        sketch.map(s => RowWeights.of(bytes, s.sampled, s.every)).getOrElse(IndexedSeq.empty),
        bytes,
        sources.map(_.bytesInMemory).sum))
    val whole = SkewInput(
      role,
      sizes,
      sliceable = false,
      cuttable = () => false,
      stable = Stability(() => keysStay, () => rowsStay))
    sliced.fold(whole) { source =>
      // Dividing a block requires that a repeated map task produces the same rows. All tasks that
      // share a block process all of it. That is cheap for a single source, whose rows are not
      // joined yet.
      def cuttable = !several && RowShare.possible(plan.output, keys) && source.canBeShared
      whole.copy(
        sizes = sizes.copy(
          blocks = source.blocks,
          wholeBytes = sizes.wholeBytes.map(_.zip(source.bytes).map { case (all, s) => all - s })),
        sliceable = true,
        cuttable = () => cuttable,
        dropCost = source.dropCost)
    }
  }

  /**
   * The sampled counts of its keys, if each row of the input is computed from one row of a single
   * source.
   */
  def sketch: Option[KeySketch] = sources match {
    case Seq(source) if source.sliceable => source.sketch
    case _ => None
  }

  def hasNumberOfUser: Boolean = sources.exists(_.hasNumberOfUser)

  def keysNotCounted: Boolean = sources.exists(_.keysNotCounted)

  /** The average size of its rows in memory: the sum over all sources. */
  def rowBytes: Double = sources.map(_.rowBytes).sum

  /** The input with other reads. */
  def reading(specs: Seq[ShufflePartitionSpec]): SparkPlan = {
    def replace(node: SparkPlan): SparkPlan =
      sources.find(_.node eq node).map(s => s.reading(specsOf(s, specs))).getOrElse {
        node match {
          case MadeOf(parts) =>
            node.withNewChildren(node.children.map { child =>
              if (parts.exists(_.child eq child)) replace(child) else child
            })
        }
      }
    replace(plan)
  }

  /**
   * The reads of a source. The sliced source is read in slices, and every slice is joined with all
   * rows of the partition in the other sources.
   */
  private def specsOf(
      source: PartitionSource,
      specs: Seq[ShufflePartitionSpec]): Seq[ShufflePartitionSpec] = {
    def whole(start: Int, end: Int) =
      CoalescedPartitionSpec(start, end, source.bytes.slice(start, end).sum)
    specs.map {
      case part: PartialReducerPartitionSpec if sliced.exists(_ eq source) => part
      case PartialReducerPartitionSpec(p, _, _, _) => whole(p, p + 1)
      case CoalescedPartitionSpec(start, end, _) => whole(start, end)
      case other => other
    }
  }
}

object PartitionedInput {

  /**
   * Finds the shuffles, buckets and storage partitions whose rows the plan combines partition by partition, or returns
   * the reason why there are none.
   */
  def of(plan: SparkPlan): Either[SkewReason, PartitionedInput] = {
    def find(node: SparkPlan, sliceable: Boolean): Either[SkewReason, Seq[PartitionSource]] =
      node match {
        case stage: ShuffleQueryStageExec if isSplittable(stage) =>
          val all = (0 until stage.shuffle.numPartitions).map(p => CoalescedPartitionSpec(p, p + 1))
          Right(Seq(ShuffleSource(node, stage, all, sliceable)))
        case AQEShuffleReadExec(stage: ShuffleQueryStageExec, specs) if isSplittable(stage) =>
          val ranges = specs.collect { case c: CoalescedPartitionSpec => c }
          if (ranges.size == specs.size) Right(Seq(ShuffleSource(node, stage, ranges, sliceable)))
          else Left(SkewReason.SplitBySpark)
        case scan: FileSourceScanExec if scan.bucketedScan =>
          single(BucketSource.of(scan, sliceable))
        case aligned: AlignPartitionsExec => single(StorageSource.of(aligned, sliceable))
        case scan: BatchScanExec => single(StorageSource.of(scan, sliceable))
        case MadeOf(parts) =>
          if (mayRunAgain(node)) {
            val found = parts.map(part => find(part.child, sliceable && part.linear))
            found.collectFirst { case Left(reason) => Left(reason) }.getOrElse {
              found.flatMap(_.toOption.get) match {
                case Seq(one) if parts.size == 1 => Right(Seq(one.below(node)))
                case several => Right(several)
              }
            }
          } else {
            Left(SkewReason.InputNotDeterministic)
          }
        case _ => Left(SkewReason.InputNotPartitioned)
      }
    find(plan, sliceable = true).flatMap { sources =>
      if (sources.map(readAs).distinct.size == 1) Right(PartitionedInput(plan, sources))
      else Left(SkewReason.InputsDiffer)
    }
  }

  private def single(source: Option[PartitionSource]): Either[SkewReason, Seq[PartitionSource]] =
    source.map(Seq(_)).toRight(SkewReason.InputNotPartitioned)

  /**
   * Every task of a split partition computes the rows again. It must get the same rows, and a MERGE
   * of Delta must not count them again.
   */
  private[skew] def mayRunAgain(node: SparkPlan): Boolean = StableRows.areMadeBy(node) &&
    !node.expressions.exists(_.exists(StableRows.isCounterOfDelta))

  /** The number of partitions of a source, and the ranges in which they are read. */
  def readAs(source: PartitionSource): (Int, Seq[(Int, Int)]) =
    (source.bytes.size, source.ranges.map(r => (r.startReducerIndex, r.endReducerIndex)))

  /**
   * A user's `repartition` by the key is also splittable, unless its number of partitions is that of
   * the result.
   */
  private def isSplittable(stage: ShuffleQueryStageExec): Boolean =
    stage.isMaterialized && stage.shuffle.outputPartitioning != SinglePartition &&
      (stage.shuffle.shuffleOrigin match {
        case ENSURE_REQUIREMENTS | REPARTITION_BY_COL | REPARTITION_BY_NUM => true
        case _ => false
      })
}
