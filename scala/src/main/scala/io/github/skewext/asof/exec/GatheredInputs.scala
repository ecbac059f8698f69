package io.github.skewext.asof.exec

import io.github.skewext.rows.{GroupingSettings, KeyFilter, KillCheck, SpillableRows, UnsafeInputs}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/**
 * Reads inputs in any order and returns the rows of the spine with their versions. It groups rows by
 * key in hash tables, and sorts each key's rows by time. If the rows do not fit into memory, it sorts
 * all of them by key and time.
 *
 * @param inputs opened one after the other, because opening a shuffle starts to fetch it.
 */
private[skewext] final class GatheredInputs(
    task: AsOfTask,
    inputs: Array[() => Iterator[InternalRow]],
    settings: GroupingSettings,
    killed: KillCheck) {

  private[this] val n = inputs.length
  private[this] val asUnsafe = new UnsafeInputs(task.inputTypes)
  private[this] val opened = new Array[Iterator[InternalRow]](n)
  private[this] var reading = 0
  private[this] var taken = 0L
  private[this] val rows = new SpillableRows[SortedInputs](
    task.sameKey,
    task.inputTypes.map(_.size).toArray,
    new Array[Boolean](n),
    settings,
    new SortedInputs(task.inputTypes, task.order, _),
    longsPerRow = TimeSorted.LongsPerRow)

  /** The keys of the spine, while it has few. There are often many versions of other keys. */
  private[this] var keysOfSpine = KeyFilter.ofKeys(GatheredInputs.FewKeys)

  openNext()

  /** Opens the input that is read next, and the one after it. Not after the end of the task. */
  private def openNext(): Unit = {
    killed.checkNow()
    for (i <- reading until math.min(n, reading + 2) if opened(i) == null) opened(i) = inputs(i)()
  }

  /**
   * Reads on until a row of the spine can match nothing, because its key or time is null. Returns
   * null after the last row of all inputs. An inner join has no such rows.
   */
  def nextAlone(): UnsafeRow = rows.keeping(read())

  private def read(): UnsafeRow = {
    while (reading < n) {
      openNext()
      val input = opened(reading)
      val (added, wanted) = if (reading == 0) (keysOfSpine, null) else (null, keysOfSpine)
      taken += rows.insertBlocks(reading, input, added, wanted)
      while (input.hasNext) {
        killed.check()
        val row = asUnsafe(reading, input.next())
        taken += 1
        if (!task.present.hasNull(reading, row)) {
          val hash = task.sameKey.hash(reading, row)
          if (added != null) added.add(hash)
          if (wanted == null || wanted.mayHave(hash)) rows.insert(reading, hash, row)
        } else if (reading == 0 && !task.inner) {
          return row
        }
        taken += rows.insertBlocks(reading, input, added, wanted)
      }
      if (reading == 0 && taken > GatheredInputs.FewKeys) keysOfSpine = null
      rows.finishInput(reading)
      // Its reader holds a block, which is garbage now.
      opened(reading) = null
      reading += 1
    }
    null
  }

  /** The other rows of the spine, after `nextAlone` has returned null. */
  def spine(): SpineRows = rows.keeping(rows.collected()) match {
    case Left(groups) => new GroupedSpine(task, groups, killed)
    case Right(sorted) => new SortedSpine(task, sorted.rows)
  }

  /** Frees memory and files. */
  def close(): Unit = rows.close()

  /** Bytes written to disk so far. */
  def spillSize: Long = rows.spillSize

  /** Peak memory in bytes. */
  def peakMemory: Long = rows.peakMemory
}

private object GatheredInputs {

  /** Number of rows of the spine in a partition. */
  private val FewKeys = 1 << 20
}
