package io.github.skewext.multijoin

import io.github.skewext.StageName
import io.github.skewext.multijoin.MarkKeys.Part
import io.github.skewext.skew._

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.{PartialReducerPartitionSpec, ShufflePartitionSpec, SparkPlan}
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
 */
private[multijoin] case class MarkKeys(
    parts: IndexedSeq[Part],
    inputTypes: Seq[Seq[DataType]],
    keys: NormalizedKeys)
    extends ((Int, Array[() => Iterator[InternalRow]]) => Iterator[Option[MetKeys]]) {

  override def apply(
      partition: Int,
      inputs: Array[() => Iterator[InternalRow]]): Iterator[Option[MetKeys]] = {
    val part = parts(partition)
    val asUnsafe = new UnsafeInputs(inputTypes)
    val wanted = new WantedKeys(keys, TaskContext.get())
    part.wantedOf.foreach(i => inputs(i)().foreach(row => wanted.add(i, asUnsafe(i, row))))
    Iterator(wanted.metBy(part.input, inputs(part.input)().map(asUnsafe(part.input, _))))
  }
}

private[skewext] object MarkKeys {

  /** The name of its stage in Spark's UI. */
  val Name = "skewext: keys before a split join"

  /**
   * @param partition of the shuffles
   * @param input the skewed one, of which it reads a slice
   * @param wantedOf the inputs whose keys are looked for
   * @param reads what it reads of each input
   */
  case class Part(partition: Int, input: Int, wantedOf: Seq[Int], reads: Seq[ShufflePartitionSpec])

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
      splits: SkewSplits,
      tasks: IndexedSeq[SkewTask]): Map[Int, MetKeys] = {
    val reads = inputs.map(PartitionedInput.reads)
    val parts = tasks.zipWithIndex.flatMap {
      case (residual @ SkewTask.Residual(_, Some(p)), t) =>
        splits.of(p).toSeq.flatMap(_.marking).map(part(p, residual, _, roles, reads.map(_(t))))
      case _ => Nil
    }
    lazy val rdds = inputs.indices.map { i =>
      SplitReads.execute(PartitionedInput.withReads(inputs(i), parts.map(_.reads(i))))
    }
    // If the rows may be others for the join, nothing is known.
    if (parts.isEmpty || rdds.exists(MultiZipRDD.isIndeterminate)) {
      Map.empty
    } else {
      val marking =
        new MultiZipRDD(sc, rdds, MarkKeys(parts, inputs.map(_.output.map(_.dataType)), keys))
      val found = StageName.named(sc, Name) {
        sc.runJob(marking, (results: Iterator[Option[MetKeys]]) => results.next())
      }
      metKeys(parts.zip(found))
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
      SkewJoinTasks.keysThatMatter(residual.roles(roles)),
      reads.updated(residual.input, ofSlice))
  }

  private def metKeys(found: Seq[(Part, Option[MetKeys])]): Map[Int, MetKeys] =
    found.groupBy(_._1.partition).flatMap { case (p, ofSlices) =>
      ofSlices
        .map(_._2)
        .reduce { (a, b) => for (x <- a; y <- b; both <- x.or(y)) yield both }
        .map(p -> _)
    }
}
