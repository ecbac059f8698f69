package io.github.skewext.skew.run

import java.util.SplittableRandom

import io.github.skewext.skew.plan.SketchLayout

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

  def start(mapTask: Int): KeySampler = {
    val sampler = new KeySampler(keys, counts.map(_.layout), every, mapTask)
    counts.foreach { sums =>
      TaskContext.get().addTaskCompletionListener[Unit] { _ =>
        numSampled.add(sampler.numSampled)
        sums.add(sampler.result)
      }
    }
    sampler
  }
}

/**
 * Samples the rows of one map task, and counts their keys. A key with a null matches no row, so it
 * is not counted. Generated code calls it.
 *
 * The sampled rows are random, because every tenth row, for example, may be of one kind. If the
 * task runs again, it samples the same rows.
 *
 * @param layout the counters; None if it samples no row.
 */
private[skewext] final class KeySampler(
    keys: Seq[Expression],
    layout: Option[SketchLayout],
    every: Int,
    mapTask: Int) {

  /** Allocated for the first sampled row: among many small tasks, most sample no row. */
  private[this] lazy val counts = new Array[Int](layout.get.size)
  private[this] var sampled = 0L
  private[this] val random = new SplittableRandom(mapTask)

  /**
   * The hash of the key, or null if the key has a null. It is interpreted, because generating code
   * in each task takes longer than the sample.
   */
  private[this] lazy val hash = If(
    keys.map(k => IsNull(k): Expression).reduce(Or),
    Literal(null, IntegerType),
    new Murmur3Hash(keys))

  def numSampled: Long = sampled

  def result: KeyCounts.OfTask =
    KeyCounts.OfTask(mapTask, if (sampled == 0) Array.emptyIntArray else counts)

  /** The number of the first sampled row, counted from 1. */
  def first: Int = nextGap()

  /** Samples a row, and returns the distance to the next sampled row. */
  def sample(row: InternalRow): Int = {
    sampled += 1
    val hashed = if (layout.isEmpty) null else hash.eval(row)
    if (hashed != null) {
      val key = hashed.asInstanceOf[Int]
      val partition = Math.floorMod(key, layout.get.partitions)
      var table = 0
      while (table < SketchLayout.Tables) {
        counts(layout.get.cell(table, key, partition)) += 1
        table += 1
      }
    }
    nextGap()
  }

  /** A random gap, `every` on average. */
  private def nextGap(): Int = if (layout.isEmpty) Int.MaxValue else random.nextInt(1, 2 * every)

  def watch(rows: Iterator[InternalRow]): Iterator[InternalRow] = new Iterator[InternalRow] {
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
