package io.github.skewext.multijoin

import scala.collection.mutable

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

private[multijoin] object MarkKeys {

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
  }

  case class FoundInPart(metKeys: Option[MetKeys], starts: Option[RowStarts])

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
    val reads = inputs.map(ShuffleInput.reads)
    val marking = tasks.zipWithIndex.flatMap {
      case (residual @ SkewTask.Residual(_, Some(p)), t) =>
        splits.of(p).toSeq.flatMap(_.marking).map(part(p, residual, _, roles, reads.map(_(t))))
      case _ => Nil
    }
    val (inRanges, ofBlocks) = marking.partition(_.slice.inRange)
    val shared = sharedBlocks(tasks, reads, inRanges)
    def isShared(part: Part) = shared.exists(_.isWholly(part))
    val search =
      shared.filterNot(block => ofBlocks.exists(block.isWholly)).map(_.toPart(inputs.size))
    val types = inputs.map(_.output.map(_.dataType))

    /** What the tasks found; nothing if they, or the join, may read other rows than others. */
    def found(parts: IndexedSeq[Part], ranges: Map[Int, RowRange]): IndexedSeq[FoundInPart] = {
      val plans = inputs.indices.map(i => ShuffleInput.withReads(inputs(i), parts.map(_.reads(i))))
      val rdds = plans.zipWithIndex.map { case (plan, i) =>
        val ofInput = ranges.filter { case (t, _) => parts(t).input == i }
        SplitReads.of(plan, ofInput).getOrElse {
          require(
            ofInput.isEmpty,
            "Tasks that mark keys were to read ranges of a block, and cannot.")
          plan.execute()
        }
      }
      if (rdds.exists(MultiZipRDD.isIndeterminate)) {
        parts.map(_ => FoundInPart(None, None))
      } else {
        collect(
          sc,
          new MultiZipRDD(sc, rdds, MarkKeys(parts, ranges.keySet, types, keys, rowShares)))
      }
    }

    val first = ofBlocks.map(m => m.copy(findsStarts = isShared(m))) ++ search
    if (first.isEmpty) {
      Nothing
    } else {
      val foundFirst = found(first, Map.empty)
      val starts = first.zip(foundFirst).collect { case (part, FoundInPart(_, Some(found))) =>
        part -> found
      }
      // The tasks of the join look for their rows themselves where they cannot read ranges.
      val readable = shared.filter(block => SplitReads.of(inputs(block.input)).isDefined)
      val ranges = readable.flatMap { block =>
        for ((_, found) <- starts.find(s => block.isWholly(s._1)).toSeq; (t, slice) <- block.pieces)
          yield t -> found.ranges(slice.shares)(slice.share)
      }.toMap
      val rangesToMark = inRanges.zipWithIndex.flatMap { case (part, i) =>
        readable
          .flatMap(block => starts.find(s => block.isWholly(s._1) && block.has(part)))
          .map { case (_, found) => i -> found.ranges(part.slice.shares)(part.slice.share) }
      }.toMap
      // If one range is not known, the residual reads the input after all.
      val marksInRanges = rangesToMark.size == inRanges.size
      val foundInRanges =
        if (inRanges.isEmpty || !marksInRanges) IndexedSeq.empty
        else inRanges.zip(found(inRanges, rangesToMark))
      val incomplete = if (marksInRanges) Set.empty[Int] else inRanges.map(_.partition).toSet
      val foundOfBlocks = first.zip(foundFirst).filterNot(f => incomplete(f._1.partition))
      Found(metKeys(foundOfBlocks ++ foundInRanges), ranges)
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

  /**
   * A block of which several tasks of the join read a range each.
   *
   * @param pieces these tasks and their slices
   */
  private case class SharedBlock(partition: Int, input: Int, map: Int, pieces: Seq[(Int, Slice)]) {

    def has(part: Part): Boolean = part.partition == partition && part.input == input &&
      part.slice.startMap == map

    /** Whether the task reads just this block. */
    def isWholly(part: Part): Boolean =
      has(part) && part.slice.endMap == map + 1 && !part.slice.inRange

    def toPart(numInputs: Int): Part = {
      val whole = Slice(map, map + 1, 0, 1, pieces.map(_._2.bytes).sum, pieces.map(_._2.bytes).sum)
      val reads = Seq.fill(numInputs)(CoalescedPartitionSpec(partition, partition + 1, 0L))
      Part(
        partition,
        input,
        whole,
        wantedOf = Nil,
        reads.updated(input, readOf(partition, whole)),
        findsStarts = true)
    }
  }

  /** @param toMark what is to be marked in ranges, too */
  private def sharedBlocks(
      tasks: IndexedSeq[SkewTask],
      reads: Seq[Seq[ShufflePartitionSpec]],
      toMark: Seq[Part]): Seq[SharedBlock] = {
    val pieces = tasks.zipWithIndex.collect {
      case (SkewTask.Piece(input, slice), t) if slice.inRange =>
        reads(input)(t) match {
          case PartialReducerPartitionSpec(p, _, _, _) => (p, input, slice.startMap) -> (t -> slice)
          case other => throw new IllegalStateException(s"A slice is read as $other.")
        }
    }
    val joined = pieces
      .groupBy(_._1)
      .map { case ((p, input, map), of) =>
        SharedBlock(p, input, map, of.map(_._2))
      }
      .toSeq
    val marked = toMark.map(m => SharedBlock(m.partition, m.input, m.slice.startMap, Nil)).distinct
    joined ++ marked.filterNot { m =>
      joined.exists(j => j.partition == m.partition && j.input == m.input && j.map == m.map)
    }
  }

  private def collect(sc: SparkContext, rdd: RDD[FoundInPart]): IndexedSeq[FoundInPart] =
    sc.runJob(rdd, (results: Iterator[FoundInPart]) => results.next()).toIndexedSeq

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
