package io.github.skewext.multijoin

import scala.collection.mutable

import io.github.skewext.StageName
import io.github.skewext.multijoin.MarkKeys.{FoundInPart, Part}
import io.github.skewext.skew._

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.{CoalescedPartitionSpec, PartialReducerPartitionSpec, ShufflePartitionSpec, SparkPlan}
import org.apache.spark.sql.skewext.MultiZipRDD
import org.apache.spark.sql.types.DataType
import org.apache.spark.{SparkContext, TaskContext}

/**
 * What the tasks do that run before a split join: they find the keys of the others that a skewed
 * input has, each for a slice of it, and where rows begin in a block that tasks of the join share.
 *
 * One task would have to read all of the skewed input to know that some key is not there. Here every
 * task says which keys are in its slice, as a bit for each key of the others, and the bits of all
 * slices together say which keys the input lacks.
 *
 * @param parts one for each partition of the RDD
 * @param inRanges the tasks that read no more than their range of a block
 */
private[multijoin] case class MarkKeys(
    parts: IndexedSeq[Part],
    inRanges: Set[Int],
    inputTypes: Seq[Seq[DataType]],
    keys: NormalizedKeys,
    rowShares: Seq[RowShare])
    extends ((Int, Array[() => Iterator[InternalRow]]) => Iterator[FoundInPart]) {

  override def apply(
      partition: Int,
      inputs: Array[() => Iterator[InternalRow]]): Iterator[FoundInPart] = {
    val part = parts(partition)
    val asUnsafe = new UnsafeInputs(inputTypes)
    def read = inputs(part.input)()
    val finder = if (part.findsStarts) Some(new RowStarts.Finder(read)) else None
    val metKeys = if (part.marks) {
      val wanted = new WantedKeys(keys, TaskContext.get())
      part.wantedOf.foreach(i => inputs(i)().foreach(row => wanted.add(i, asUnsafe(i, row))))
      val rows = finder.getOrElse(read)
      val slice =
        if (inRanges.contains(partition)) rows else rowShares(part.input).filter(rows, part.slice)
      wanted.metBy(part.input, slice.map(asUnsafe(part.input, _)))
    } else {
      None
    }
    Iterator(FoundInPart(metKeys, finder.map(_.result())))
  }
}

private[skewext] object MarkKeys {

  /** The name of its stage in Spark's UI. */
  val Name = "skewext: keys before a split join"

  /**
   * @param partition of the shuffles
   * @param wantedOf the inputs whose keys are looked for; none if only starts of rows are
   * @param reads what it reads of each input
   * @param findsStarts whether it finds where rows begin in the slice, which then is one block
   */
  case class Part(
      partition: Int,
      input: Int,
      slice: Slice,
      wantedOf: Seq[Int],
      reads: Seq[ShufflePartitionSpec],
      findsStarts: Boolean = false) {

    def marks: Boolean = wantedOf.nonEmpty

    /** The block that the slice is in, or begins with. */
    def block: Block = Block(partition, input, slice.startMap)

    def isOneBlock: Boolean = slice.endMap == slice.startMap + 1 && !slice.inRange
  }

  /** What one map task wrote for a partition of an input. */
  case class Block(partition: Int, input: Int, map: Int)

  case class FoundInPart(metKeys: Option[MetKeys], starts: Option[RowStarts])

  private val Unknown = FoundInPart(None, None)

  /**
   * @param metKeys by partition; without those of which the tasks cannot say it
   * @param ranges of shared blocks, by task of the join
   */
  case class Found(metKeys: Map[Int, MetKeys], ranges: Map[Int, RowRange])

  private val Nothing = Found(Map.empty, Map.empty)

  /**
   * Runs the tasks, if any are planned.
   *
   * @param inputs of the split join
   * @param tasks what the tasks of the join do
   */
  def run(
      sc: SparkContext,
      inputs: Seq[SparkPlan],
      roles: Seq[InputRole],
      keys: NormalizedKeys,
      rowShares: Seq[RowShare],
      splits: SkewSplits,
      tasks: IndexedSeq[SkewTask]): Found = {
    val reads = inputs.map(PartitionedInput.reads)
    val marking = tasks.zipWithIndex.flatMap {
      case (residual @ SkewTask.Residual(_, Some(p)), t) =>
        splits.of(p).toSeq.flatMap(_.marking).map(part(p, residual, _, roles, reads.map(_(t))))
      case _ => Nil
    }
    val (inRanges, ofBlocks) = marking.partition(_.slice.inRange)
    val pieces = piecesInRanges(tasks, reads)
    val shared = (pieces.map(_.block) ++ inRanges.map(_.block)).distinct
    val readAnyway = ofBlocks.filter(_.isOneBlock).map(_.block).toSet
    val types = inputs.map(_.output.map(_.dataType))

    /** What the tasks found; nothing if they, or the join, may read other rows than others. */
    def found(parts: IndexedSeq[Part], ranges: Map[Int, RowRange]): IndexedSeq[FoundInPart] = {
      val rdds = inputs.indices.map { i =>
        val plan = PartitionedInput.withReads(inputs(i), parts.map(_.reads(i)))
        SplitReads.execute(plan, ranges.filter { case (t, _) => parts(t).input == i })
      }
      if (rdds.exists(MultiZipRDD.isIndeterminate)) {
        parts.map(_ => Unknown)
      } else {
        collect(
          sc,
          new MultiZipRDD(sc, rdds, MarkKeys(parts, ranges.keySet, types, keys, rowShares)))
      }
    }

    val first =
      ofBlocks.map(m => m.copy(findsStarts = m.isOneBlock && shared.contains(m.block))) ++
        shared.filterNot(readAnyway).map(search(_, pieces, inputs.size))
    if (first.isEmpty) {
      Nothing
    } else {
      val foundFirst = found(first, Map.empty)
      val starts = first
        .zip(foundFirst)
        .collect { case (part, FoundInPart(_, Some(found))) => part.block -> found }
        .toMap
      // The tasks of the join look for their rows themselves where they cannot read ranges.
      val canRead = inputs.map(SplitReads.canRead)
      def rangeOf(block: Block, slice: Slice): Option[RowRange] =
        if (canRead(block.input)) starts.get(block).map(_.range(slice.share, slice.shares))
        else None
      val ranges =
        pieces.flatMap(p => rangeOf(p.block, p.slice).map(p.task -> _)).toMap
      val rangesToMark = inRanges.zipWithIndex.flatMap { case (part, i) =>
        rangeOf(part.block, part.slice).map(i -> _)
      }.toMap
      // If one range is not known, the residual reads the input after all.
      val foundInRanges =
        if (inRanges.nonEmpty && rangesToMark.size == inRanges.size) found(inRanges, rangesToMark)
        else inRanges.map(_ => Unknown)
      Found(metKeys(first.zip(foundFirst) ++ inRanges.zip(foundInRanges)), ranges)
    }
  }

  /** @param reads what the residual reads of each input */
  private def part(
      partition: Int,
      residual: SkewTask.Residual,
      slice: Slice,
      roles: Seq[InputRole],
      reads: Seq[ShufflePartitionSpec]): Part =
    Part(
      partition,
      residual.input,
      slice,
      SkewJoinTasks.keysThatMatter(residual.roles(roles)),
      reads.updated(residual.input, readOf(partition, slice)))

  private def readOf(partition: Int, slice: Slice) =
    PartialReducerPartitionSpec(partition, slice.startMap, slice.endMap, slice.bytesRead)

  /** A task of the join that reads a range of a block. */
  private case class PieceInRange(task: Int, block: Block, slice: Slice)

  private def piecesInRanges(
      tasks: IndexedSeq[SkewTask],
      reads: Seq[Seq[ShufflePartitionSpec]]): IndexedSeq[PieceInRange] =
    tasks.zipWithIndex.collect {
      case (SkewTask.Piece(input, slice), t) if slice.inRange =>
        reads(input)(t) match {
          case PartialReducerPartitionSpec(p, _, _, _) =>
            PieceInRange(t, Block(p, input, slice.startMap), slice)
          case other => throw new IllegalStateException(s"A slice is read as $other.")
        }
    }

  /** A task that does nothing but find where rows begin. */
  private def search(block: Block, pieces: Seq[PieceInRange], numInputs: Int): Part = {
    val bytes = pieces.filter(_.block == block).map(_.slice.bytes).sum
    val whole = Slice(block.map, block.map + 1, 0, 1, bytes, bytes)
    val nothing = CoalescedPartitionSpec(block.partition, block.partition + 1, 0L)
    Part(
      block.partition,
      block.input,
      whole,
      wantedOf = Nil,
      Seq.fill(numInputs)(nothing).updated(block.input, readOf(block.partition, whole)),
      findsStarts = true)
  }

  private def collect(sc: SparkContext, rdd: RDD[FoundInPart]): IndexedSeq[FoundInPart] =
    StageName.named(sc, Name) {
      sc.runJob(rdd, (results: Iterator[FoundInPart]) => results.next()).toIndexedSeq
    }

  private def metKeys(found: Seq[(Part, FoundInPart)]): Map[Int, MetKeys] = {
    val met = mutable.Map.empty[Int, Option[MetKeys]]
    for ((part, FoundInPart(ofSlice, _)) <- found if part.marks) {
      met(part.partition) = met.get(part.partition).fold(ofSlice) { before =>
        for (a <- before; b <- ofSlice; both <- a.or(b)) yield both
      }
    }
    met.collect { case (p, Some(keys)) => p -> keys }.toMap
  }
}
