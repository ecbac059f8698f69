package io.github.skewext.sketch

import java.util.SplittableRandom

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, If, IsNull, Literal, Murmur3Hash, Or}
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.types.IntegerType

/**
 * What map tasks need to count keys.
 *
 * @param keys what Spark partitions the rows by, bound to them
 * @param every of how many rows one is sampled
 */
private[skewext] final class KeySampling(keys: Seq[Expression], every: Int, numSampled: SQLMetric)
    extends Serializable {

  /** Where the counts go; known when the number of map tasks is. Nowhere if these are too many. */
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

/** Takes a sample of the rows of one map task; called by generated code. */
private[skewext] abstract class KeySampler {

  /** Which row is sampled first, counted from 1. */
  def first: Int

  /** Takes a row; returns which one is next, counted from here. */
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
 * Counts the keys of the sample. A key with a null matches nothing, and is not counted.
 *
 * Which rows are sampled is a matter of chance, as each tenth row may be of one kind; but if the task
 * runs again, it is the same chance.
 */
private[skewext] final class CountingSampler(
    keys: Seq[Expression],
    layout: SketchLayout,
    every: Int,
    mapTask: Int)
    extends KeySampler {

  /** Made for the first row: of many small tasks most sample none. */
  private[this] lazy val counts = new Array[Int](layout.size)
  private[this] var sampled = 0L
  private[this] var random = new SplittableRandom(mapTask).nextLong() | 1L

  /** Null for a key with a null. To generate code for it, in each task, takes longer than a sample. */
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

  /** From 1 to twice `every`, which it is on average; a step of Marsaglia's xorshift. */
  private def nextGap(): Int = {
    random ^= random << 13
    random ^= random >>> 7
    random ^= random << 17
    1 + ((random >>> 32) * (2 * every - 1) >>> 32).toInt
  }
}
