package io.github.skewext.skew.run

import java.util.concurrent.TimeUnit

import scala.util.control.NonFatal

import io.github.skewext.join.InputRole
import io.github.skewext.platform.StageName
import io.github.skewext.rows.{NormalizedKeys, UnsafeInputs}
import io.github.skewext.skew.plan.{SkewSplits, Slice, SplitTask}
import io.github.skewext.skew.run.MarkKeys.Part

import org.apache.spark.internal.Logging
import org.apache.spark.rdd.{RDD, ShuffledRDD}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.skewext.{MultiZipRDD, SqlInternals, TaskInternals}
import org.apache.spark.sql.types.DataType
import org.apache.spark.{SparkContext, TaskContext}

/**
 * The tasks of a stage that runs before a split join, a semi-join pre-pass. Each task marks the
 * keys of the other inputs that occur in one slice of the skewed input.
 *
 * A single task would have to read the whole skewed input to find that a key is missing. Here the
 * marks of a task are one bit for each key of the other inputs, and the marks of all slices
 * together show the missing keys. A shuffle sends them to the residual, as one more input of the
 * join's tasks. So only the residual waits for them, the driver stores none, and Spark recomputes
 * lost ones.
 *
 * @param parts one for each partition of the RDD.
 * @param lastAttempt number of a task's last attempt; if it fails too, the residual reads the
 *                    skewed input.
 */
private[skewext] case class MarkKeys(
    parts: IndexedSeq[Part],
    inputTypes: Seq[Seq[DataType]],
    keys: NormalizedKeys,
    lastAttempt: Int,
    time: SQLMetric)
    extends ((Int, Array[() => Iterator[InternalRow]]) => Iterator[(Int, Array[Long])])
    with Logging {

  /**
   * Returns one array for the task of the residual: [[MatchedKeys]], or empty if they are unknown.
   */
  override def apply(
      partition: Int,
      inputs: Array[() => Iterator[InternalRow]]): Iterator[(Int, Array[Long])] = {
    val part = parts(partition)
    val context = TaskContext.get()
    val started = System.nanoTime()
    val met =
      try {
        metBy(part, inputs, context)
      } catch {
        case NonFatal(e)
            if context.attemptNumber() >= lastAttempt && !TaskInternals.isEnding(context) =>
          logWarning("The keys of a slice are not known; the residual reads all of its input.", e)
          None
      }
    time.add(TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - started))
    Iterator(part.residual -> met.fold(Array.emptyLongArray)(_.toLongs))
  }

  private def metBy(
      part: Part,
      inputs: Array[() => Iterator[InternalRow]],
      context: TaskContext): Option[MatchedKeys] = {
    val asUnsafe = new UnsafeInputs(inputTypes)
    val wanted = new KeyLookup(keys, context)
    part.wantedOf.foreach(i => inputs(i)().foreach(row => wanted.add(i, asUnsafe(i, row))))
    val rows = asUnsafe.all(part.input, inputs(part.input)())
    try wanted.metBy(part.input, rows, MarkKeys.MaxKeys)
    finally wanted.close()
  }
}

private[skewext] object MarkKeys {

  /** The name of the stage in Spark's UI. */
  val Name = "skewext: keys before a split join"

  /**
   * The maximum number of keys that a task marks: 16 MB of bits, which a residual holds at a time.
   */
  private val MaxKeys = 1 << 27

  /**
   * @param residual the task of the join that uses the marks.
   * @param input the skewed input; the task reads a slice of it.
   * @param wantedOf the inputs whose keys are looked up.
   * @param reads the task's read of each input.
   */
  case class Part(residual: Int, input: Int, wantedOf: Seq[Int], reads: Seq[ShufflePartitionSpec])

  /**
   * Returns the marks, if marking tasks are planned: in the partition of each residual one row for
   * each slice of its input, see [[MatchedKeys.ofAll]].
   *
   * @param inputs the inputs of the split join.
   * @param tasks the work of the join's tasks.
   */
  def sent(
      sc: SparkContext,
      inputs: Seq[SparkPlan],
      roles: Seq[InputRole],
      keys: NormalizedKeys,
      splits: SkewSplits,
      tasks: IndexedSeq[SplitTask],
      time: SQLMetric): Option[RDD[InternalRow]] = {
    val reads = inputs.map(SplitReadSpecs.readsOf)
    val parts = tasks.zipWithIndex.flatMap {
      case (residual @ SplitTask.Residual(_, Some(p), _), t) =>
        splits.of(p).toSeq.flatMap(_.marking).map(part(t, p, residual, _, roles, reads.map(_(t))))
      case _ => Nil
    }
    def rdds = inputs.indices.map { i =>
      SplitReads.execute(inputs(i), parts.map(_.reads(i)))
    }
    Option(parts)
      .filter(_.nonEmpty)
      .map(_ => rdds)
      // If the join may read other rows than these tasks, the marks are not valid.
      .filterNot(_.exists(MultiZipRDD.isIndeterminate))
      .map { slices =>
        StageName.named(sc, Name) {
          val types = inputs.map(_.output.map(_.dataType))
          val marking = MarkKeys(parts, types, keys, TaskInternals.lastAttempt(sc), time)
          val marks = new MultiZipRDD(sc, slices, slices.map(_ => true), marking)
          new ShuffledRDD[Int, Array[Long], Array[Long]](marks, SqlInternals.byNumber(tasks.size))
            .map { case (_, longs) => MatchedKeys.row(longs) }
        }
      }
  }

  /** @param reads the residual's read of each input */
  private def part(
      task: Int,
      partition: Int,
      residual: SplitTask.Residual,
      slice: Slice,
      roles: Seq[InputRole],
      reads: Seq[ShufflePartitionSpec]): Part = {
    val ofSlice =
      PartialReducerPartitionSpec(partition, slice.startMap, slice.endMap, slice.bytesRead)
    Part(
      task,
      residual.input,
      SplitTasks.keysThatMatter(residual.roles(roles)),
      reads.updated(residual.input, ofSlice))
  }
}
