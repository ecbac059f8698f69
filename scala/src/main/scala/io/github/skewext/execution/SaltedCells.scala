package io.github.skewext.execution

import java.util.HashMap

import io.github.skewext.plan.{HotRows, SaltKeys, SaltedKey}

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.BuildSide
import org.apache.spark.sql.execution.metric.SQLMetric

/**
 * What the tasks of [[SaltKeysExec]] need.
 *
 * @param keyTypes the columns of a key as a row of its own
 * @param stable whether a task has the same rows when it runs again
 * @param keysAlone whether rows with equal keys are identical
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
 * The cells of the rows of one task, one row after the other. A row of a hot key is put into a part by
 * a hash of all that is in it and of the task's number. Where rows are nothing but their key, this
 * would put all of them into one part; but then they cannot be told apart, and go to the parts in turn.
 * Where a task may have other rows when it runs again, all of them go into one part, which the number of
 * the task tells: reducers that have read before must find no row once more, and lack none.
 *
 * Most rows are of no hot key. Whoever asks need not make a row of a key to know that: its hash will do.
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

  // What comes next, and what else comes of the same row.
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

  /** Goes on to a row whose key has a null, or may be hot. */
  def take(key: UnsafeRow, rowHash: Long): Unit =
    if (key.anyNull()) {
      if (nullCells > 0) show(-1 - part(rowHash, nullCells), 1, 0) else copiesLeft = 0
    } else {
      val met = hotKeys.get(key)
      if (met == null) takeOther() else takeHot(met, rowHash)
    }

  /** Goes on to a row of another key. */
  def takeOther(): Unit = show(0, 1, 0)

  /** Goes on to a cell of the row, or of a marker beside it; false if there is none any more. */
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
      // Where all rows are in one part, they are in every cell that a row of the other side is in.
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

  /** Eight thousand, for some hundred keys. */
  private val FilterBits = 13

  private val Seed = 42L

  /** By which keys are told that are not hot. */
  def hashOfKey(keys: Seq[Expression]): Expression = XxHash64(keys, Seed)

  /** A hot key, and how many rows of it the task has seen. */
  private final class Met(val key: SaltedKey) {
    var rows = 0L
  }
}
