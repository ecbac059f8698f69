package io.github.skewext.latest

import io.github.skewext.asof.exec.TieOrder
import io.github.skewext.rows.{GroupingSettings, InputReader, JoinKeys, KeyGroups, KeyOrder, KeySortedGroups, RowCursor, SpillableGroups, TaskRows, UnsafeInputs}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{SortOrder, UnsafeRow}
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.types.DataType

/**
 * What a task of a [[LatestRowsExec]] needs to know.
 *
 * @param keys compares keys, in which nulls are equal.
 * @param ordered if defined, the rows are sorted by their keys in this order.
 * @param ties the order in which the first row of a key is the latest one, see [[TieOrder]].
 */
private[skewext] case class LatestTask(
    types: Seq[DataType],
    keys: JoinKeys,
    ordered: Option[KeyOrder],
    ties: Seq[SortOrder],
    grouping: GroupingSettings,
    outputRows: SQLMetric,
    spillSize: SQLMetric)
    extends ((Int, Array[() => Iterator[InternalRow]]) => Iterator[InternalRow]) {

  override def apply(
      partition: Int,
      inputs: Array[() => Iterator[InternalRow]]): Iterator[InternalRow] =
    new LatestRowsIterator(this, inputs.head()).toScala
}

/** The latest row of each key of a partition. */
private[skewext] final class LatestRowsIterator(task: LatestTask, rows: Iterator[InternalRow])
    extends TaskRows(task.outputRows) {

  private[this] val keys = task.keys.own
  private[this] val numFields = Array(task.types.size)
  private[this] val single = Array(false)
  private[this] val asUnsafe = new UnsafeInputs(Seq(task.types))
  private[this] val gathered =
    if (task.ordered.isDefined) null
    else new SpillableGroups(keys, numFields, single, task.grouping)
  private[this] lazy val groups = task.ordered.fold(grouped())(merged)
  private[this] val ties = new TieOrder(task.ties)
  private[this] val latest = UnsafeRow.createFromByteArray(0, task.types.size)

  override def getRow: InternalRow = latest

  override protected def advance(): Boolean = {
    killed.check()
    val found = groups.nextGroup()
    if (found) {
      keep(groups.rows(0))
      while (groups.nextCombination()) {
        if (ties.isFirst(groups.rows(0), latest)) keep(groups.rows(0))
      }
    }
    found
  }

  override protected def close(): Unit = if (gathered != null) gathered.close()

  override protected def report(): Unit =
    if (gathered != null) task.spillSize.add(gathered.spillSize)

  private def keep(row: UnsafeRow): Unit =
    if (groups.rowsStay) latest.pointTo(row.getBaseObject, row.getBaseOffset, row.getSizeInBytes)
    else latest.copyFrom(row)

  /** The rows of sorted inputs are not stored. */
  private def merged(byKey: KeyOrder): KeyGroups = {
    val order = byKey.own
    val sorted = new RowCursor.Ordered(0, rows, asUnsafe, order)
    new KeySortedGroups(
      keys,
      numFields,
      single,
      task.grouping.groupRowsInMemory,
      order,
      Array(sorted),
      needed = Array(false))
  }

  private def grouped(): KeyGroups = gathered.keeping {
    new InputReader(gathered, keys, keys, asUnsafe, killed, numInputs = 1).nextAlone(0, rows)
    gathered.finishInput(0)
    gathered.result()
  }
}
