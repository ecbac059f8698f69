package io.github.skewext.execution.split

import scala.collection.mutable
import scala.util.control.NonFatal

import io.github.skewext.execution.NormalizedKeys
import io.github.skewext.execution.grouping.UnsafeInputs
import io.github.skewext.execution.split.MarkKeys.Part
import io.github.skewext.internal.StageName
import io.github.skewext.plan.InputRole

import org.apache.spark.internal.Logging
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution._
import org.apache.spark.sql.skewext.MultiZipRDD
import org.apache.spark.sql.types.DataType
import org.apache.spark.{SparkContext, TaskContext}

/**
 * What the tasks do that run before a split join: they find the keys of the others that a skewed
 * input has, each for a slice of it.
 *
 * One task would have to read all of the skewed input to know that some key is not there. Here every
 * task says which keys are in its slice, as a bit for each key of the others, and the bits of all
 * slices together say which keys the input lacks.
 *
 * @param parts one for each partition of the RDD
 * @param maxKeys about more of them a task says nothing
 */
private[skewext] case class MarkKeys(
    parts: IndexedSeq[Part],
    inputTypes: Seq[Seq[DataType]],
    keys: NormalizedKeys,
    maxKeys: Int)
    extends ((Int, Array[() => Iterator[InternalRow]]) => Iterator[Array[Long]]) {

  /** One array, of [[MatchedKeys]] or of nothing. */
  override def apply(
      partition: Int,
      inputs: Array[() => Iterator[InternalRow]]): Iterator[Array[Long]] = {
    val part = parts(partition)
    val asUnsafe = new UnsafeInputs(inputTypes)
    val wanted = new KeyLookup(keys, TaskContext.get())
    part.wantedOf.foreach(i => inputs(i)().foreach(row => wanted.add(i, asUnsafe(i, row))))
    def slice = inputs(part.input)().map(asUnsafe(part.input, _))
    Iterator(wanted.metBy(part.input, slice, maxKeys).fold(Array.emptyLongArray)(_.toLongs))
  }
}

private[skewext] object MarkKeys extends Logging {

  /** The name of its stage in Spark's UI. */
  val Name = "skewext: keys before a split join"

  /** The least that a row with a key of its own takes in a shuffle that is compressed. */
  private val BytesOfKey = 4

  /** What all tasks may send, as a part of what Spark lets a job send before it fails. */
  private val PartOfResult = 4

  /** The same where Spark sets no limit. */
  private val MaxBytes = 1L << 28

  /**
   * @param partition of the shuffles
   * @param input the skewed one, of which it reads a slice
   * @param wantedOf the inputs whose keys are looked for
   * @param reads what it reads of each input
   */
  case class Part(
      partition: Int,
      input: Int,
      wantedOf: Seq[Int],
      reads: Seq[ShufflePartitionSpec]) {

    /** How much it sends, a bit for each key, if each row has another key. */
    def expectedBytes: Long = wantedOf
      .map(reads)
      .collect { case CoalescedPartitionSpec(_, _, Some(bytes)) => bytes / BytesOfKey / 8 }
      .sum
  }

  /**
   * Runs the tasks, if any are planned. If they fail nothing is known, and the residuals read the
   * skewed inputs.
   *
   * @param inputs of the split join
   * @param tasks what the tasks of the join do
   * @return by partition; without those of which the tasks cannot say it
   */
  def run(
      sc: SparkContext,
      inputs: Seq[SparkPlan],
      roles: Seq[InputRole],
      keys: NormalizedKeys,
      splits: SkewSplits,
      tasks: IndexedSeq[SplitTask]): Map[Int, MatchedKeys] = {
    val reads = inputs.map(SplitReadSpecs.readsOf)
    val planned = tasks.zipWithIndex.flatMap {
      case (residual @ SplitTask.Residual(_, Some(p), _), t) =>
        splits.of(p).toSeq.flatMap(_.marking).map(part(p, residual, _, roles, reads.map(_(t))))
      case _ => Nil
    }
    val maxBytes = maxBytesOf(sc)
    val parts = within(maxBytes, planned)
    if (parts.isEmpty) {
      Map.empty
    } else {
      try {
        val rdds = inputs.indices.map { i =>
          SplitReads.execute(SplitReadSpecs.replacedIn(inputs(i), parts.map(_.reads(i))))
        }
        val maxKeys = math.min(maxBytes / parts.size * 8, Int.MaxValue).toInt
        val types = inputs.map(_.output.map(_.dataType))
        // If the join may read other rows, nothing is known.
        if (rdds.exists(MultiZipRDD.isIndeterminate)) Map.empty
        else collect(sc, parts, new MultiZipRDD(sc, rdds, MarkKeys(parts, types, keys, maxKeys)))
      } catch {
        case NonFatal(e) if !isCancelled(e) =>
          logWarning("The tasks before a split join failed; it does without them.", e)
          Map.empty
      }
    }
  }

  private def maxBytesOf(sc: SparkContext): Long =
    sc.getConf.getSizeAsBytes("spark.driver.maxResultSize", "1g") match {
      case 0 => MaxBytes
      case most => most / PartOfResult
    }

  /** The query is to end, and whatever is run in place of the job would not. Spark says it in words. */
  private def isCancelled(e: Throwable): Boolean =
    Option(e.getMessage).exists(_.matches("(?s)Job \\d+ cancelled.*"))

  /** The tasks of as many partitions as may send what they find, those with few keys first. */
  private[skewext] def within(maxBytes: Long, parts: IndexedSeq[Part]): IndexedSeq[Part] = {
    val bytes = parts
      .groupBy(_.partition)
      .map { case (partition, of) => partition -> of.map(_.expectedBytes).sum }
      .toSeq
      .sortBy(_._2)
    val sums = bytes.scanLeft(0L)(_ + _._2).tail
    val chosen = bytes.zip(sums).collect { case ((p, _), sum) if sum <= maxBytes => p }.toSet
    parts.filter(part => chosen(part.partition))
  }

  /** @param reads what the residual reads of each input */
  private def part(
      partition: Int,
      residual: SplitTask.Residual,
      slice: Slice,
      roles: Seq[InputRole],
      reads: Seq[ShufflePartitionSpec]): Part = {
    val ofSlice =
      PartialReducerPartitionSpec(partition, slice.startMap, slice.endMap, slice.bytesRead)
    Part(
      partition,
      residual.input,
      SplitTasks.keysThatMatter(residual.roles(roles)),
      reads.updated(residual.input, ofSlice))
  }

  /** Puts together what tasks have found, as it arrives. */
  private def collect(
      sc: SparkContext,
      parts: IndexedSeq[Part],
      marking: RDD[Array[Long]]): Map[Int, MatchedKeys] = {
    val found = mutable.Map.empty[Int, Option[MatchedKeys]]
    def add(task: Int, longs: Array[Long]): Unit = {
      val p = parts(task).partition
      val ofSlice = if (longs.isEmpty) None else Some(MatchedKeys.ofLongs(longs))
      found(p) = found.get(p).fold(ofSlice) { before =>
        for (a <- before; b <- ofSlice; both <- a.or(b)) yield both
      }
    }
    StageName.named(sc, Name) {
      sc.runJob(marking, (sent: Iterator[Array[Long]]) => sent.next(), add _)
    }
    found.collect { case (p, Some(met)) => p -> met }.toMap
  }
}
