package io.github.skewext.skew

import java.util.SplittableRandom

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, If, IsNull, Literal, Murmur3Hash, Or, UnsafeProjection}
import org.apache.spark.sql.types.IntegerType

/**
 * The rows of a map task, while the keys of a sample of them are counted. A key with a null matches
 * nothing, and is not counted.
 *
 * Which rows are sampled is a matter of chance, as each tenth row may be of one kind; but if the task
 * runs again, it is the same chance.
 *
 * @param keys what Spark partitions the rows by, bound to them
 * @param every of how many rows one is sampled
 */
private[skew] final class KeySampler(
    rows: Iterator[InternalRow],
    keys: Seq[Expression],
    layout: SketchLayout,
    every: Int,
    mapTask: Int)
    extends Iterator[InternalRow] {

  private[this] val counts = new Array[Int](layout.size)
  private[this] var sampled = 0L
  private[this] val gaps = new SplittableRandom(mapTask)
  private[this] var untilNext = nextGap()

  private[this] val hash = UnsafeProjection.create(
    Seq(
      If(
        keys.map(k => IsNull(k): Expression).reduce(Or),
        Literal(null, IntegerType),
        new Murmur3Hash(keys))))

  def numSampled: Long = sampled

  def result: KeyCounts.OfTask = KeyCounts.OfTask(mapTask, counts)

  override def hasNext: Boolean = rows.hasNext

  override def next(): InternalRow = {
    val row = rows.next()
    untilNext -= 1
    if (untilNext == 0) {
      untilNext = nextGap()
      count(row)
    }
    row
  }

  private def count(row: InternalRow): Unit = {
    sampled += 1
    val hashed = hash(row)
    if (!hashed.isNullAt(0)) {
      var table = 0
      while (table < SketchLayout.Tables) {
        counts(layout.cell(table, hashed.getInt(0))) += 1
        table += 1
      }
    }
  }

  /** `every` on average. */
  private def nextGap(): Int = gaps.nextInt(1, 2 * every)
}
