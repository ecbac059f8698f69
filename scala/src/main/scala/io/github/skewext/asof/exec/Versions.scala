package io.github.skewext.asof.exec

import io.github.skewext.asof.AsOfDirection.{Backward, Forward, Nearest}
import io.github.skewext.asof.AsOfMatch
import io.github.skewext.rows.RowCursor

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.Decimal

/** The versions of one table, among which rows of the spine search theirs, in the order of time. */
private[skewext] abstract class Versions(task: AsOfTask, input: Int) {

  private[this] val AsOfMatch(direction, exact) = task.table(input).matches

  /** Whether a version at the time of the row counts as one before it. */
  protected[this] final val skipsEqual: Boolean = if (direction == Forward) !exact else exact
  protected[this] final val looksBack: Boolean = direction != Forward
  protected[this] final val looksAhead: Boolean = direction != Backward
  protected[this] final val isNearest: Boolean = direction == Nearest

  private[this] val joined = new JoinedRow
  private[this] val within = task.table(input).within.map(Predicate.create(_)).toArray
  within.foreach(_.initialize(0))
  private[this] val nearer =
    if (isNearest) new Distances(task.keys.times.head, task.keys.times(input)) else null

  /** Sets `earlier` and `later` for a row of the spine. */
  def seek(row: UnsafeRow): Unit

  /** The last version before a row of the spine, if it may match. */
  final var earlier: UnsafeRow = _

  /** The first version after a row of the spine, if it may match. */
  final var later: UnsafeRow = _

  /** The version that matches a row of the spine, or null. */
  final def find(row: UnsafeRow): UnsafeRow = {
    seek(row)
    if (later == null || (earlier != null && isNearer(row))) earlier else later
  }

  private def isNearer(row: UnsafeRow): Boolean =
    task.keys.order.compare(input, earlier, 0, row) == 0 || nearer(earlier, row, later)

  /** Whether a version of the row's key is not too far away. */
  protected[this] final def isWithin(version: UnsafeRow, row: UnsafeRow, bound: Int): Boolean =
    within.length == 0 || within(bound).eval(joined(row, version))
}

/**
 * Versions that are sorted by key and time. It holds copies of at most three of them, however many
 * a key has.
 */
private[skewext] final class SortedVersions(task: AsOfTask, input: Int, rows: RowCursor)
    extends Versions(task, input) {

  private[this] val order = task.keys.order
  private[this] val versions =
    new DistinctRows(input, rows, order, task.table(input).ties, task.output.inputTypes(input).size)

  /** The last version that `find` has passed. */
  private[this] var before: UnsafeRow = _

  /** The version after it. */
  private[this] var after: UnsafeRow = versions.read(null)
  private[this] var afterPrefix = versions.prefix

  /** The version after that one, if it was read. */
  private[this] var beyond: UnsafeRow = _

  /** The prefix of the row of the spine. */
  var prefix: Long = _

  override def seek(row: UnsafeRow): Unit = {
    var c = compareAfter(row)
    while (c < 0 || (c == 0 && skipsEqual)) {
      val passed = before
      before = after
      after = if (beyond == null) versions.read(passed) else beyond
      afterPrefix = versions.prefix
      beyond = null
      c = compareAfter(row)
    }
    // A version at the time of the row that does not match it stays for later rows.
    if (isNearest && c == 0 && beyond == null) beyond = versions.read(null)
    earlier = if (looksBack) candidate(before, row, 0) else null
    later =
      if (isNearest) candidate(if (c == 0) beyond else after, row, 1)
      else if (looksAhead) candidate(after, row, 0)
      else null
  }

  /** Compares `after` with a row of the spine. After the last version, there is a later one. */
  private def compareAfter(row: UnsafeRow): Int =
    if (after == null) 1
    else if (afterPrefix != prefix) java.lang.Long.compare(afterPrefix, prefix)
    else order.compare(input, after, 0, row)

  private def candidate(version: UnsafeRow, row: UnsafeRow, bound: Int): UnsafeRow =
    if (version != null && task.keys.same.equal(input, version, 0, row) &&
      isWithin(version, row, bound)) {
      version
    } else {
      null
    }
}

/** Distances of times. They cannot overflow, and are exact where the type is. */
private final class Distances(spineTime: Expression, time: Expression) {

  /** Whether the version before the row of the spine is as near as the one after it, or nearer. */
  def apply(earlier: UnsafeRow, row: UnsafeRow, later: UnsafeRow): Boolean =
    (time.eval(earlier), spineTime.eval(row), time.eval(later)) match {
      case (a: Decimal, b: Decimal, c: Decimal) =>
        val (from, at, to) = (a.toJavaBigDecimal, b.toJavaBigDecimal, c.toJavaBigDecimal)
        at.subtract(from).compareTo(to.subtract(at)) <= 0
      case (a: Double, b: Double, c: Double) => java.lang.Double.compare(b - a, c - b) <= 0
      case (a: Float, b: Float, c: Float) =>
        java.lang.Double.compare(b.toDouble - a, c.toDouble - b) <= 0
      case (a: Number, b: Number, c: Number) =>
        java.lang.Long.compareUnsigned(b.longValue - a.longValue, c.longValue - b.longValue) <= 0
    }
}
