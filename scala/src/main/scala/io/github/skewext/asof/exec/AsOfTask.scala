package io.github.skewext.asof.exec

import io.github.skewext.asof.AsOfDirection.{Backward, Forward, Nearest}
import io.github.skewext.asof.AsOfMatch
import io.github.skewext.join.exec.grouping.{JoinKeys, KeyOrder, UnsafeInputs}
import io.github.skewext.join.exec.{InputRows, RowAssembler}

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.RowIterator
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.types._

/**
 * Joins one partition of an [[AsOfJoinExec]], whose inputs are sorted by key and time. It contains no
 * plan, so that a serialized task is small.
 *
 * @param output the output's columns, over [[InputRows]].
 * @param makesRows whether the output is UnsafeRows, or the [[InputRows]] from which they are built.
 * @param sameKey compares the keys of rows.
 * @param present recognizes rows whose key or time is null.
 * @param order the order of the inputs.
 */
private[skewext] case class AsOfTask(
    inputTypes: Seq[Seq[DataType]],
    output: Seq[Expression],
    makesRows: Boolean,
    sameKey: JoinKeys,
    present: JoinKeys,
    order: KeyOrder,
    times: Seq[Expression],
    matches: Seq[AsOfMatch],
    ties: Seq[Seq[SortOrder]],
    within: Seq[Seq[Expression]],
    inner: Boolean,
    outputRows: SQLMetric,
    matched: SQLMetric)
    extends ((Int, Array[() => Iterator[InternalRow]]) => Iterator[InternalRow]) {

  override def apply(
      partition: Int,
      inputs: Array[() => Iterator[InternalRow]]): Iterator[InternalRow] =
    new AsOfIterator(this, inputs.map(_())).toScala
}

/** The output rows of one partition. */
private final class AsOfIterator(task: AsOfTask, inputs: Array[Iterator[InternalRow]])
    extends RowIterator {

  private[this] val n = inputs.length
  private[this] val asUnsafe = new UnsafeInputs(task.inputTypes)
  private[this] val versions = Array.tabulate(n - 1) { i =>
    new VersionCursor(task, i + 1, inputs(i + 1), asUnsafe)
  }
  private[this] val combination =
    new InputRows(n, new RowAssembler(task.inputTypes, task.output))
  private[this] var current: InternalRow = _
  private[this] var outputRows = 0L
  private[this] var matched = 0L

  TaskContext.get().addTaskCompletionListener[Unit] { _ =>
    task.outputRows.add(outputRows)
    task.matched.add(matched)
  }

  override def getRow: InternalRow = current

  override def advanceNext(): Boolean = {
    while (inputs(0).hasNext) {
      val row = asUnsafe(0, inputs(0).next())
      val found = findVersions(row)
      if (!task.inner || found == n - 1) {
        combination.rows(0) = row
        combination.changedFrom(0)
        current = if (task.makesRows) combination.toUnsafeRow else combination
        outputRows += 1
        matched += found
        return true
      }
    }
    false
  }

  /** Puts the version of each table into the combination. Returns how many tables have one. */
  private def findVersions(row: UnsafeRow): Int = {
    val mayMatch = !task.present.hasNull(0, row)
    var found = 0
    var i = 1
    while (i < n) {
      val version = if (mayMatch) versions(i - 1).find(row) else null
      if (version != null) found += 1
      combination.rows(i) = version
      i += 1
    }
    found
  }
}

/**
 * Searches a slice of the versions of one table for those that can match: the last one before each
 * row of the spine, and the first one after it. The version that matches a row is always found in
 * the slice that contains it.
 *
 * @param input the number of the table.
 */
private[exec] case class CandidateTask(task: AsOfTask, input: Int)
    extends ((Int, Array[() => Iterator[InternalRow]]) => Iterator[InternalRow]) {

  /** @param zipped the spine, and the part of the versions. */
  override def apply(
      partition: Int,
      zipped: Array[() => Iterator[InternalRow]]): Iterator[InternalRow] = {
    val asUnsafe = new UnsafeInputs(task.inputTypes)
    val versions = new VersionCursor(task, input, zipped(1)(), asUnsafe)
    var earlier, later: UnsafeRow = null
    zipped(0)().map(asUnsafe(0, _)).filterNot(task.present.hasNull(0, _)).flatMap { row =>
      versions.seek(row)
      // Many rows of the spine have the same version.
      def isNew(found: UnsafeRow, last: UnsafeRow) = found != null && found != last
      val newEarlier = if (isNew(versions.earlier, earlier)) Some(versions.earlier.copy()) else None
      val newLater = if (isNew(versions.later, later)) Some(versions.later.copy()) else None
      earlier = newEarlier.getOrElse(earlier)
      later = newLater.getOrElse(later)
      newEarlier.iterator ++ newLater.iterator
    }
  }
}

/**
 * The versions of one table, read along with the spine. It holds copies of at most three versions,
 * however many a key has.
 */
private final class VersionCursor(
    task: AsOfTask,
    input: Int,
    rows: Iterator[InternalRow],
    asUnsafe: UnsafeInputs) {

  private[this] val order = task.order
  private[this] val AsOfMatch(direction, exact) = task.matches(input - 1)
  private[this] val skipsEqual = if (direction == Forward) !exact else exact
  private[this] val joined = new JoinedRow
  private[this] val within = task.within(input - 1).map(Predicate.create(_)).toArray
  within.foreach(_.initialize(0))
  private[this] val nearer =
    if (direction == Nearest) new Distances(task.times.head, task.times(input)) else null
  private[this] val versions =
    new DistinctRows(
      input,
      rows,
      order,
      task.ties(input - 1),
      task.inputTypes(input).size,
      asUnsafe)

  /** The last version that `find` has passed. */
  private[this] var before: UnsafeRow = _

  /** The version after it. */
  private[this] var after: UnsafeRow = versions.read(null)

  /** The version after that one, if it was read. */
  private[this] var beyond: UnsafeRow = _

  /** The version that matches a row of the spine, or null. Rows of the spine come in order. */
  def find(row: UnsafeRow): UnsafeRow = {
    seek(row)
    if (later == null || (earlier != null && isNearer(earlier, row, later))) earlier else later
  }

  /** The last version before a row of the spine, if it may match. */
  var earlier: UnsafeRow = _

  /** The first version after a row of the spine, if it may match. */
  var later: UnsafeRow = _

  /** Sets `earlier` and `later` for a row of the spine. Rows of the spine come in order. */
  def seek(row: UnsafeRow): Unit = {
    var c = compare(after, row)
    while (c < 0 || (c == 0 && skipsEqual)) {
      val passed = before
      before = after
      after = if (beyond == null) versions.read(passed) else beyond
      beyond = null
      c = compare(after, row)
    }
    // A version at the time of the row that does not match it stays for later rows.
    if (direction == Nearest && c == 0 && beyond == null) beyond = versions.read(null)
    earlier = if (direction == Forward) null else candidate(before, row, 0)
    later = direction match {
      case Backward => null
      case Forward => candidate(after, row, 0)
      case Nearest => candidate(if (c == 0) beyond else after, row, 1)
    }
  }

  /** Compares a version with a row of the spine. After the last version, there is a later one. */
  private def compare(version: UnsafeRow, row: UnsafeRow): Int =
    if (version == null) 1 else order.compare(input, version, 0, row)

  private def candidate(version: UnsafeRow, row: UnsafeRow, bound: Int): UnsafeRow =
    if (version != null && task.sameKey.equal(input, version, 0, row) &&
      (within.length == 0 || within(bound).eval(joined(row, version)))) {
      version
    } else {
      null
    }

  private def isNearer(earlier: UnsafeRow, row: UnsafeRow, later: UnsafeRow): Boolean =
    order.compare(input, earlier, 0, row) == 0 || nearer(earlier, row, later)
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
