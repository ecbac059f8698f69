package io.github.skewext.asof.exec

import io.github.skewext.rows.{GroupingSettings, InputReader, InputsInOrder, KeyFilter, KillCheck, SpillableRows, UnsafeInputs}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/**
 * Reads inputs in any order and returns the rows of the spine with their versions. It groups rows by
 * key in hash tables, and sorts each key's rows by time. If the rows do not fit into memory, it sorts
 * all of them by key and time.
 *
 * @param inputs not opened, because opening a shuffle starts to fetch it.
 */
private[skewext] final class GatheredInputs(
    task: AsOfTask,
    inputs: Array[() => Iterator[InternalRow]],
    settings: GroupingSettings,
    killed: KillCheck) {

  private[this] val n = inputs.length
  private[this] val rows = new SpillableRows(
    task.keys.same,
    task.output.inputTypes.map(_.size).toArray,
    new Array[Boolean](n),
    settings,
    order = Some(task.keys.order),
    longsPerRow = TimeSorted.LongsPerRow)
  private[this] val asUnsafe = new UnsafeInputs(task.output.inputTypes)

  // There are often many versions of keys that the spine lacks.
  private[this] val reading = new InputsInOrder(
    new InputReader(rows, task.keys.same, task.keys.present, asUnsafe, killed, n),
    inputs,
    Array.range(0, n),
    ofFirst = KeyFilter.ofKeys(GatheredInputs.FewKeys),
    mostKeys = GatheredInputs.FewKeys)

  /**
   * Reads on until a row of the spine can match nothing, because its key or time is null. Returns
   * null after the last row of all inputs. An inner join has no such rows.
   */
  def nextAlone(): UnsafeRow = rows.keeping {
    var row = reading.nextAlone()
    while (row != null && (task.inner || reading.current > 0)) row = reading.nextAlone()
    row
  }

  /** The other rows of the spine, after `nextAlone` has returned null. */
  def spine(): SpineRows = rows.keeping(rows.collected()) match {
    case Left(groups) => new GroupedSpine(task, groups, killed)
    case Right(sorted) => new SortedSpine(task, sorted)
  }

  /** Frees memory and files. */
  def close(): Unit = rows.close()

  /** Bytes written to disk so far. */
  def spillSize: Long = rows.spillSize
}

private object GatheredInputs {

  /** Number of rows of the spine in a partition. */
  private val FewKeys = 1 << 20
}
