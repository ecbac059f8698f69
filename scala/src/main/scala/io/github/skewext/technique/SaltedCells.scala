package io.github.skewext.technique

import java.util.HashMap

import io.github.skewext.rows.KeyFilter

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.BuildSide
import org.apache.spark.sql.execution.metric.SQLMetric

/**
 * The parameters of the tasks of [[SaltKeysExec]].
 *
 * @param keyTypes the columns of a row that contains only the key.
 * @param stable whether a retried task has the same rows.
 * @param keysAlone whether rows with equal keys are identical.
 */
private[skewext] case class Salting(
    keyTypes: Seq[BoundReference],
    stable: Boolean,
    keysAlone: Boolean,
    side: BuildSide,
    hot: Seq[SaltedKey],
    hotRows: HotRows,
    nullCells: Int)

private[skewext] case class SaltingMetrics(
    saltedRows: SQLMetric,
    copies: SQLMetric,
    markers: SQLMetric)

/**
 * Computes the cells of the rows of one task, one row after the other.
 *
 * A hash of the content of a row and of the task's number selects the part of a hot key to which
 * the row belongs. If rows consist only of their key, this would put all of them into one part. But
 * then they are indistinguishable, so they go to the parts in turn. If a retried task may have
 * other rows, all its rows go to one part, which the task's number selects. Otherwise a reducer
 * that has read the first attempt could get a row twice or lose one.
 *
 * Most rows have no hot key. The hash of a key shows this without a row for the key.
 */
private[skewext] final class SaltedCells(salting: Salting, task: Int, metrics: SaltingMetrics) {
  import SaltedCells._
  import salting.{hotRows, nullCells, side}

  private[this] val hotKeys = new HashMap[UnsafeRow, Met]
  private[this] val hashes = new KeyFilter(FilterBits)
  private[this] val hashOf = hashOfKey(salting.keyTypes)
  salting.hot.foreach { each =>
    hotKeys.put(each.key, new Met(each))
    hashes.add(hashOf.eval(each.key).asInstanceOf[Long])
  }

  // The next cell, and the remaining cells of the same row.
  private[this] var copiesLeft = 0
  private[this] var nextCell = 0
  private[this] var stride = 0
  private[this] var nextKind = SaltKeys.First
  private[this] var toMark: SaltedKey = _

  private[this] var currentCell = 0
  private[this] var currentKind = SaltKeys.First

  def cell: Int = currentCell

  def kind: Int = currentKind

  /** Whether a key without a null may be hot, by its [[SaltedCells.hashOfKey]]. */
  def mayBeHot(keyHash: Long): Boolean = hashes.mayHave(keyHash)

  /** Moves to a row whose key contains a null or may be hot. */
  def take(key: UnsafeRow, rowHash: Long): Unit =
    if (key.anyNull()) {
      if (nullCells > 0) show(-1 - part(rowHash, nullCells), 1, 0) else copiesLeft = 0
    } else {
      val met = hotKeys.get(key)
      if (met == null) takeOther() else takeHot(met, rowHash)
    }

  /** Moves to a row with another key. */
  def takeOther(): Unit = show(0, 1, 0)

  /**
   * Moves to the next cell of the row, or of a marker beside it. Returns false if there is none.
   */
  def next(): Boolean = {
    if (copiesLeft == 0 && toMark != null) mark()
    if (copiesLeft == 0) {
      false
    } else {
      currentCell = nextCell
      currentKind = nextKind
      nextCell += stride
      copiesLeft -= 1
      if (nextKind == SaltKeys.First) nextKind = SaltKeys.Further
      true
    }
  }

  private def takeHot(met: Met, rowHash: Long): Unit = {
    val salted = met.key
    val isFirst = met.rows == 0
    met.rows += 1
    if (hotRows == HotRows.Marked) {
      copiesLeft = 0
    } else {
      val salts = salted.salts(side)
      val salt =
        if (salts == 1) 0
        else if (salting.stable && salting.keysAlone)
          Math.floorMod(task + met.rows, salts.toLong).toInt
        else part(rowHash, salts)
      if (salts > 1) metrics.saltedRows += 1
      val copies = salted.copies(side)
      metrics.copies += copies - 1
      show(salted.firstCell(side, salt), copies, salted.stride(side))
    }
    val marks = hotRows match {
      case HotRows.Shown => false
      // If all rows are in one part, every cell with a row of the other side has them.
      case HotRows.ShownAndMarked => salted.salts(side) > 1
      case HotRows.Marked => true
    }
    if (isFirst && marks) toMark = salted
  }

  private def show(firstCell: Int, copies: Int, step: Int): Unit = {
    nextCell = firstCell
    copiesLeft = copies
    stride = step
    nextKind = SaltKeys.First
  }

  private def mark(): Unit = {
    val copies = toMark.copies(side)
    show(toMark.firstCell(side, 0), copies, toMark.stride(side))
    nextKind = SaltKeys.Marker
    metrics.markers += copies
    toMark = null
  }

  private def part(rowHash: Long, parts: Int): Int = {
    val h = XXH64.hashLong(if (salting.stable) rowHash else 0L, task.toLong)
    Math.floorMod((h ^ (h >>> 32)).toInt, parts)
  }
}

private[skewext] object SaltedCells {

  /** 8,192 bits, for some hundred keys. */
  private val FilterBits = 13

  private val Seed = 42L

  /** The hash that shows that a key is not hot. */
  def hashOfKey(keys: Seq[Expression]): Expression = XxHash64(keys, Seed)

  /** A hot key, and the number of its rows that the task has read. */
  private final class Met(val key: SaltedKey) {
    var rows = 0L
  }
}
