package io.github.skewext.asof.exec

import io.github.skewext.asof.AsOfMatch
import io.github.skewext.rows.{GroupingSettings, InputRows, JoinKeys, KeyOrder, RowCursor, TaskOutput, TaskRows, UnsafeInputs}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.metric.SQLMetric

/**
 * Joins one partition of an [[AsOfJoinExec]]. It contains no plan, so that a serialized task is
 * small.
 *
 * @param inner whether a row of the spine requires a version of each table.
 * @param tables the tables of versions: the inputs but the first one, which is the spine
 * @param grouping if empty, the inputs are sorted by key and time.
 */
private[skewext] case class AsOfTask(
    output: TaskOutput,
    inner: Boolean,
    keys: AsOfKeys,
    tables: Seq[AsOfTable],
    grouping: Option[GroupingSettings],
    metrics: AsOfMetrics)
    extends ((Int, Array[() => Iterator[InternalRow]]) => Iterator[InternalRow]) {

  override def apply(
      partition: Int,
      inputs: Array[() => Iterator[InternalRow]]): Iterator[InternalRow] =
    new AsOfIterator(own, inputs).toScala

  /** The same task for one iterator, see [[JoinKeys.own]]. */
  private[skewext] def own: AsOfTask = copy(keys = keys.own)

  def table(input: Int): AsOfTable = tables(input - 1)

  /** The rows of inputs that are sorted by key and time. */
  def ordered(inputs: Array[() => Iterator[InternalRow]]): Array[RowCursor] = {
    val asUnsafe = new UnsafeInputs(output.inputTypes)
    Array.tabulate(inputs.length)(i => new RowCursor.Ordered(i, inputs(i)(), asUnsafe, keys.order))
  }
}

/**
 * The keys and times of all inputs.
 *
 * @param same compares the keys of rows.
 * @param present recognizes rows whose key or time is null.
 * @param order the order of keys and times.
 * @param timeOrder the order of times.
 */
private[skewext] case class AsOfKeys(
    same: JoinKeys,
    present: JoinKeys,
    order: KeyOrder,
    timeOrder: KeyOrder,
    times: Seq[Expression]) {

  def own: AsOfKeys = copy(same.own, present.own, order.own, timeOrder.own)
}

/** What matches of a table of versions. [[io.github.skewext.asof.MultiAsOfJoin]] describes it. */
private[skewext] case class AsOfTable(
    matches: AsOfMatch,
    ties: Seq[SortOrder],
    within: Seq[Expression])

/** The operator's SQL metrics. A task adds to them once, at its end. */
private[skewext] case class AsOfMetrics(
    outputRows: SQLMetric,
    matched: SQLMetric,
    spillSize: SQLMetric)

/** The rows of the spine, one after the other, and the version of each table that each row gets. */
private[skewext] trait SpineRows {

  /** Moves to the next row. Returns false after the last one. */
  def advance(): Boolean

  def row: UnsafeRow

  /** The version that the row gets of a table, or null. Requested for one table after the other. */
  def version(input: Int): UnsafeRow
}

/** The output rows of one partition. */
private final class AsOfIterator(task: AsOfTask, inputs: Array[() => Iterator[InternalRow]])
    extends TaskRows(task.metrics.outputRows) {

  private[this] val n = inputs.length
  private[this] val gathered = task.grouping.map(new GatheredInputs(task, inputs, _, killed))
  private[this] val makesRows = task.output.makesRows
  private[this] val combination = new InputRows(n, task.output.assembler)

  /** Null until the inputs have been gathered. */
  private[this] var spine: SpineRows =
    if (gathered.isDefined) null else new SortedSpine(task, task.ordered(inputs))
  private[this] var current: InternalRow = _
  private[this] var matched = 0L

  override def getRow: InternalRow = current

  override protected def advance(): Boolean = {
    if (spine == null) {
      val alone = gathered.get.nextAlone()
      if (alone != null) {
        java.util.Arrays.fill(combination.rows.asInstanceOf[Array[AnyRef]], null)
        killed.check()
        show(alone)
        return true
      }
      spine = gathered.get.spine()
    }
    while (spine.advance()) {
      killed.check()
      val found = findVersions()
      if (!task.inner || found == n - 1) {
        matched += found
        show(spine.row)
        return true
      }
    }
    false
  }

  override protected def close(): Unit = gathered.foreach(_.close())

  override protected def report(): Unit = {
    task.metrics.matched.add(matched)
    gathered.foreach(each => task.metrics.spillSize.add(each.spillSize))
  }

  private def show(row: UnsafeRow): Unit = {
    combination.rows(0) = row
    combination.changedFrom(0)
    current = if (makesRows) combination.toUnsafeRow else combination
  }

  /** Puts the version of each table into the combination. Returns how many tables have one. */
  private def findVersions(): Int = {
    var found = 0
    var i = 1
    while (i < n) {
      val version = spine.version(i)
      if (version != null) found += 1
      combination.rows(i) = version
      i += 1
    }
    found
  }
}

/**
 * The rows of a spine that is sorted by key and time, as are the versions.
 *
 * @param inputs their prefixes are hashes of keys, or those of the order.
 */
private final class SortedSpine(task: AsOfTask, inputs: Array[RowCursor]) extends SpineRows {

  private[this] val spine = inputs(0)
  private[this] val versions =
    Array.tabulate(inputs.length - 1)(i => new SortedVersions(task, i + 1, inputs(i + 1)))
  private[this] var begun = false
  private[this] var mayMatch = false

  override def row: UnsafeRow = spine.row

  override def advance(): Boolean = {
    if (begun) spine.advance()
    begun = true
    mayMatch = spine.live && !task.keys.present.hasNull(0, row)
    spine.live
  }

  override def version(input: Int): UnsafeRow =
    if (mayMatch) {
      val of = versions(input - 1)
      of.prefix = spine.prefix
      of.find(row)
    } else {
      null
    }
}

/**
 * Searches a slice of the versions of one table for those that can match: the last one before each
 * row of the spine, and the first one after it. The version that matches a row is always found in
 * the slice that contains it.
 *
 * @param shared the task of the join, which iterators must not share.
 * @param input the number of the table.
 */
private[skewext] case class CandidateTask(shared: AsOfTask, input: Int)
    extends ((Int, Array[() => Iterator[InternalRow]]) => Iterator[InternalRow]) {

  /** @param zipped the spine, and the part of the versions. */
  override def apply(
      partition: Int,
      zipped: Array[() => Iterator[InternalRow]]): Iterator[InternalRow] = {
    val task = shared.own
    val asUnsafe = new UnsafeInputs(task.output.inputTypes)
    val order = task.keys.order
    val part = new RowCursor.Ordered(input, zipped(1)(), asUnsafe, order)
    val versions = new SortedVersions(task, input, part)
    var earlier, later: UnsafeRow = null
    zipped(0)().map(asUnsafe(0, _)).filterNot(task.keys.present.hasNull(0, _)).flatMap { row =>
      versions.prefix = order.prefix(0, row)
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
