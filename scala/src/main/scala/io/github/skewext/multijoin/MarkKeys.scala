package io.github.skewext.multijoin

import scala.collection.mutable

import io.github.skewext.multijoin.MarkKeys.Part
import io.github.skewext.skew.{RowShare, ShuffleInput, SkewSplits, SkewTask, Slice}

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.{PartialReducerPartitionSpec, ShufflePartitionSpec, SparkPlan}
import org.apache.spark.sql.skewext.MultiZipRDD
import org.apache.spark.sql.types.DataType
import org.apache.spark.{SparkContext, TaskContext}

/**
 * What the tasks do that run before a split join, and find the keys of the others that a skewed input
 * has: each for a slice of it.
 *
 * One task would have to read all of the skewed input to know that some key is not there. Here every
 * task says which keys are in its slice, as a bit for each key of the others, and the bits of all
 * slices together say which keys the input lacks.
 *
 * @param parts one for each partition of the RDD
 */
private[multijoin] case class MarkKeys(
    parts: IndexedSeq[Part],
    inputTypes: Seq[Seq[DataType]],
    keys: NormalizedKeys,
    rowShares: Seq[RowShare])
    extends ((Int, Array[() => Iterator[InternalRow]]) => Iterator[Option[MetKeys]]) {

  override def apply(
      partition: Int,
      inputs: Array[() => Iterator[InternalRow]]): Iterator[Option[MetKeys]] = {
    val part = parts(partition)
    val asUnsafe = new UnsafeInputs(inputTypes)
    val wanted = new WantedKeys(keys, TaskContext.get())
    part.wantedOf.foreach(i => inputs(i)().foreach(row => wanted.add(i, asUnsafe(i, row))))
    val slice = rowShares(part.input).filter(inputs(part.input)(), part.slice)
    Iterator(wanted.metBy(part.input, slice.map(asUnsafe(part.input, _))))
  }
}

private[multijoin] object MarkKeys {

  /**
   * @param partition of the shuffles
   * @param wantedOf the inputs whose keys are looked for
   * @param reads what it reads of each input
   */
  case class Part(
      partition: Int,
      input: Int,
      slice: Slice,
      wantedOf: Seq[Int],
      reads: Seq[ShufflePartitionSpec])

  /**
   * Runs the tasks, if any are planned.
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
      rowShares: Seq[RowShare],
      splits: SkewSplits,
      tasks: IndexedSeq[SkewTask]): Map[Int, MetKeys] = {
    val reads = inputs.map(ShuffleInput.reads)
    val parts = tasks.zipWithIndex.flatMap {
      case (residual @ SkewTask.Residual(_, Some(p)), t) =>
        splits.of(p).toSeq.flatMap(_.marking).map(part(p, residual, _, roles, reads.map(_(t))))
      case _ => Nil
    }
    if (parts.isEmpty) {
      Map.empty
    } else {
      val rdds = inputs.indices.map { i =>
        ShuffleInput.withReads(inputs(i), parts.map(_.reads(i))).execute()
      }
      // The join may read other rows than these tasks, if a map task runs again in between.
      if (rdds.exists(MultiZipRDD.isIndeterminate)) {
        Map.empty
      } else {
        val types = inputs.map(_.output.map(_.dataType))
        collect(sc, parts, new MultiZipRDD(sc, rdds, MarkKeys(parts, types, keys, rowShares)))
      }
    }
  }

  /** @param reads what the residual reads of each input */
  private def part(
      partition: Int,
      residual: SkewTask.Residual,
      slice: Slice,
      roles: Seq[InputRole],
      reads: Seq[ShufflePartitionSpec]): Part = {
    val ofSlice =
      PartialReducerPartitionSpec(partition, slice.startMap, slice.endMap, slice.bytesRead)
    Part(
      partition,
      residual.input,
      slice,
      SkewJoinTasks.keysThatMatter(residual.roles(roles)),
      reads.updated(residual.input, ofSlice))
  }

  private def collect(
      sc: SparkContext,
      parts: IndexedSeq[Part],
      rdd: RDD[Option[MetKeys]]): Map[Int, MetKeys] = {
    val met = mutable.Map.empty[Int, Option[MetKeys]]
    sc.runJob(
      rdd,
      (results: Iterator[Option[MetKeys]]) => results.next(),
      (i: Int, ofSlice: Option[MetKeys]) => {
        val p = parts(i).partition
        met(p) = met.get(p).fold(ofSlice) { before =>
          for (a <- before; b <- ofSlice; both <- a.or(b)) yield both
        }
      })
    met.collect { case (p, Some(keys)) => p -> keys }.toMap
  }
}
