package io.github.skewext.skew.exec

import java.util.SplittableRandom

import io.github.skewext.skew.SketchLayout

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, If, IsNull, Literal, Murmur3Hash, Or}
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.types.IntegerType

/**
 * The parameters of key sampling, which map tasks receive.
 *
 * @param keys the expressions by which Spark partitions the rows, bound to the rows.
 * @param every the sampling interval: one row in `every` is sampled, on average.
 */
private[skewext] final class KeySampling(keys: Seq[Expression], every: Int, numSampled: SQLMetric)
    extends Serializable {

  /**
   * The accumulator of the counters. It is set when the number of map tasks is known, and is None
   * if there are too many map tasks.
   */
  @volatile var counts: Option[KeyCounts] = None

  def start(mapTask: Int): KeySampler = counts match {
    case None => KeySampler.Idle
    case Some(sums) =>
      val counting = new CountingSampler(keys, sums.layout, every, mapTask)
      TaskContext.get().addTaskCompletionListener[Unit] { _ =>
        numSampled.add(counting.numSampled)
        sums.add(counting.result)
      }
      counting
  }
}

/** Samples the rows of one map task. Generated code calls it. */
private[skewext] abstract class KeySampler {

  /** The number of the first sampled row, counted from 1. */
  def first: Int

  /** Samples a row, and returns the distance to the next sampled row. */
  def sample(row: InternalRow): Int

  final def watch(rows: Iterator[InternalRow]): Iterator[InternalRow] = new Iterator[InternalRow] {
    private[this] var untilNext = first

    override def hasNext: Boolean = rows.hasNext

    override def next(): InternalRow = {
      val row = rows.next()
      untilNext -= 1
      if (untilNext == 0) untilNext = sample(row)
      row
    }
  }
}

private[skewext] object KeySampler {
  object Idle extends KeySampler {
    override def first: Int = Int.MaxValue
    override def sample(row: InternalRow): Int = Int.MaxValue
  }
}

/**
 * Counts the keys of the sampled rows. A key with a null matches no row, so it is not counted.
 *
 * The sampled rows are random, because every tenth row, for example, may be of one kind. If the
 * task runs again, it samples the same rows.
 */
private[skewext] final class CountingSampler(
    keys: Seq[Expression],
    layout: SketchLayout,
    every: Int,
    mapTask: Int)
    extends KeySampler {

  /** Allocated for the first sampled row: among many small tasks, most sample no row. */
  private[this] lazy val counts = new Array[Int](layout.size)
  private[this] var sampled = 0L
  private[this] val random = new SplittableRandom(mapTask)

  /**
   * The hash of the key, or null if the key has a null. It is interpreted, because generating code
   * in each task takes longer than the sample.
   */
  private[this] val hash = If(
    keys.map(k => IsNull(k): Expression).reduce(Or),
    Literal(null, IntegerType),
    new Murmur3Hash(keys))

  def numSampled: Long = sampled

  def result: KeyCounts.OfTask =
    KeyCounts.OfTask(mapTask, if (sampled == 0) Array.emptyIntArray else counts)

  override def first: Int = nextGap()

  override def sample(row: InternalRow): Int = {
    sampled += 1
    val hashed = hash.eval(row)
    if (hashed != null) {
      val key = hashed.asInstanceOf[Int]
      val partition = Math.floorMod(key, layout.partitions)
      var table = 0
      while (table < SketchLayout.Tables) {
        counts(layout.cell(table, key, partition)) += 1
        table += 1
      }
    }
    nextGap()
  }

  /** A random gap, `every` on average. */
  private def nextGap(): Int = random.nextInt(1, 2 * every)
}
