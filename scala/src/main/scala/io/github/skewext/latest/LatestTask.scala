package io.github.skewext.latest

import io.github.skewext.asof.exec.{DistinctRows, SortedInputs, TieOrder}
import io.github.skewext.rows.{GroupingSettings, HashedGroups, InputReader, JoinKeys, KeyOrder, KillCheck, RowChunks, SpillableRows, TaskRows, UnsafeInputs}

import org.apache.spark.TaskContext
import org.apache.spark.memory.SparkOutOfMemoryError
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{SortOrder, UnsafeRow}
import org.apache.spark.sql.execution.RowIterator
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.skewext.{SparkShims, TaskInternals}
import org.apache.spark.sql.types.DataType

/**
 * What a task of a [[LatestRowsExec]] needs to know.
 *
 * @param sameKey compares keys without nulls.
 * @param byKey the order of keys, which may have nulls.
 * @param ties the order in which the first row of a key is the latest one, see [[TieOrder]].
 */
private[skewext] case class LatestTask(
    types: Seq[DataType],
    sameKey: JoinKeys,
    byKey: KeyOrder,
    ties: Seq[SortOrder],
    grouping: GroupingSettings,
    outputRows: SQLMetric,
    spillSize: SQLMetric)
    extends ((Int, Array[() => Iterator[InternalRow]]) => Iterator[InternalRow]) {

  override def apply(
      partition: Int,
      inputs: Array[() => Iterator[InternalRow]]): Iterator[InternalRow] =
    new LatestRowsIterator(own, inputs.head()).toScala

  /** The same task for one iterator, see [[JoinKeys.own]]. */
  def own: LatestTask = copy(sameKey = sameKey.own, byKey = byKey.own)

  /** The latest rows of rows that are sorted by key. */
  def ofSorted(rows: Iterator[InternalRow]): RowIterator = new RowIterator {
    private[this] val distinct =
      new DistinctRows(0, rows, byKey, ties, types.size, new UnsafeInputs(Seq(types)))
    private[this] val latest = UnsafeRow.createFromByteArray(0, types.size)

    override def getRow: InternalRow = latest

    override def advanceNext(): Boolean = {
      val found = distinct.read(latest) != null
      if (found) outputRows += 1
      found
    }
  }

  /** The latest rows of groups. */
  def ofGroups(groups: HashedGroups): RowIterator = new RowIterator {
    private[this] val order = new TieOrder(ties)
    private[this] val latest, other = new UnsafeRow(types.size)

    override def getRow: InternalRow = latest

    override def advanceNext(): Boolean = {
      val found = groups.nextGroup()
      if (found) {
        var member = groups.firstRow(0)
        groups.pointTo(latest, groups.placeOf(member))
        member = groups.nextRow(0, member)
        while (member != 0) {
          val place = groups.placeOf(member)
          groups.pointTo(other, place)
          if (order.isFirst(other, latest)) groups.pointTo(latest, place)
          member = groups.nextRow(0, member)
        }
        outputRows += 1
      }
      found
    }
  }
}

/**
 * The latest row of each key of a partition. Keys with a null are rare. They have no hash, so their
 * rows are sorted.
 */
private[skewext] final class LatestRowsIterator(task: LatestTask, rows: Iterator[InternalRow])
    extends TaskRows {

  private[this] val gathered = new SpillableRows[SortedInputs](
    task.sameKey,
    Array(task.types.size),
    Array(false),
    task.grouping,
    new SortedInputs(Seq(task.types), task.byKey, _),
    giveUpRest = () => if (hasNulls) ofNulls.spill())
  private[this] val context = TaskContext.get()
  private[this] lazy val ofNulls =
    new SortedInputs(Seq(task.types), task.byKey, RowChunks.pageSize(context))
  private[this] var hasNulls, readsNulls = false
  private[this] var latest: RowIterator = _

  private[this] val end = TaskInternals.atEnd(context) {
    task.spillSize.add(gathered.spillSize)
    if (hasNulls) ofNulls.free()
    TaskInternals.reportPeakMemory(context, gathered.peakMemory)
  }

  override def getRow: InternalRow = latest.getRow

  override protected def advance(): Boolean = {
    if (latest == null) latest = ofKeys()
    var found = latest.advanceNext()
    if (!found) {
      gathered.close()
      if (hasNulls && !readsNulls) {
        readsNulls = true
        latest = task.ofSorted(ofNulls.rows(0))
        found = latest.advanceNext()
      }
      if (!found) end.run()
    }
    found
  }

  private def insertedNull(row: UnsafeRow): Boolean =
    try {
      ofNulls.insert(0, 0L, row.getBaseObject, row.getBaseOffset, row.getSizeInBytes)
      true
    } catch {
      case _: SparkOutOfMemoryError => false
    }

  private def ofKeys(): RowIterator = gathered.keeping {
    val keys = task.sameKey
    val reader = new InputReader(
      gathered,
      keys,
      alone = keys,
      new UnsafeInputs(Seq(task.types)),
      new KillCheck(context),
      numInputs = 1)
    var withNull = reader.nextAlone(0, rows)
    while (withNull != null) {
      hasNulls = true
      if (!insertedNull(withNull)) {
        gathered.giveWay()
        if (!insertedNull(withNull)) {
          throw SparkShims.outOfMemory("There is no memory for one row.")
        }
      }
      withNull = reader.nextAlone(0, rows)
    }
    // A finished sorter spills when the other one needs memory.
    if (hasNulls) ofNulls.finishInput(0)
    gathered.finishInput(0)
    gathered.collected() match {
      case Left(groups) => task.ofGroups(groups)
      case Right(sorted) => task.ofSorted(sorted.rows(0))
    }
  }
}
