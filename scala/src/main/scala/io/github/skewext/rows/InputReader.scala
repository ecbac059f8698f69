package io.github.skewext.rows

import io.github.skewext.shuffle.ShuffledColumns

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.DataType

/**
 * Reads rows into [[SpillableRows]], by whole blocks of columns where they come in such blocks.
 *
 * @param keys the keys of the inputs
 * @param alone recognizes rows that match nothing, because their key is null
 */
private[skewext] final class InputReader(
    val rows: SpillableRows,
    keys: JoinKeys,
    alone: JoinKeys,
    asUnsafe: UnsafeInputs,
    val killed: KillCheck,
    numInputs: Int) {

  private[this] val read = new Array[Long](numInputs)

  /** Number of rows read so far of an input. */
  def numRows(input: Int): Long = read(input)

  /**
   * Inserts rows until one matches nothing. Returns that row, which is not inserted, or null after
   * the last one.
   *
   * @param added gets the hashes of the rows, or null
   * @param wanted rows whose hashes it cannot have may be left out; null for none
   */
  def nextAlone(
      input: Int,
      from: Iterator[InternalRow],
      added: KeyFilter = null,
      wanted: KeyFilter = null): UnsafeRow = {
    var taken = rows.insertBlocks(input, from, added, wanted)
    var found: UnsafeRow = null
    while (found == null && from.hasNext) {
      killed.check()
      val row = asUnsafe(input, from.next())
      taken += 1
      if (alone.hasNull(input, row)) {
        found = row
      } else {
        val hash = keys.hash(input, row)
        if (added != null) added.add(hash)
        if (wanted == null || wanted.mayHave(hash)) rows.insert(input, hash, row)
        taken += rows.insertBlocks(input, from, added, wanted)
      }
    }
    read(input) += taken
    found
  }
}

/**
 * Reads all inputs of a task, one after the other. The next one is opened while the one before it is
 * read, so that its first blocks are there by then.
 *
 * @param inputs not opened, because opening a shuffle starts to fetch it
 * @param order the order in which they are read
 * @param ofFirst a filter for the keys of the first one, or null. Rows of others that it cannot have
 *                are left out.
 * @param mostKeys with more rows of the first input, the filter is not used.
 */
private[skewext] final class InputsInOrder(
    reader: InputReader,
    inputs: Array[() => Iterator[InternalRow]],
    order: Array[Int],
    ofFirst: KeyFilter,
    mostKeys: Long = Long.MaxValue) {

  private[this] val opened = new Array[Iterator[InternalRow]](inputs.length)
  private[this] var position = 0

  openNext()

  /** The input that is read. */
  def current: Int = order(position)

  /** Opens the current input, and the one after it. Not after the end of the task. */
  private def openNext(): Unit = {
    reader.killed.checkNow()
    order.slice(position, position + 2).foreach { i =>
      if (opened(i) == null) opened(i) = inputs(i)()
    }
  }

  /**
   * Reads on until a row matches nothing. Returns that row of the current input, or null after the
   * last row of all inputs.
   */
  def nextAlone(): UnsafeRow = {
    while (position < order.length) {
      openNext()
      val input = current
      val (added, wanted) = if (position == 0) (ofFirst, null) else (null, filter)
      val alone = reader.nextAlone(input, opened(input), added, wanted)
      if (alone != null) return alone
      reader.rows.finishInput(input)
      // Its reader holds a block, which is garbage now.
      opened(input) = null
      position += 1
    }
    null
  }

  private def filter: KeyFilter = if (reader.numRows(order(0)) <= mostKeys) ofFirst else null
}

/**
 * Converts the rows of the inputs to `UnsafeRow`s. Exchanges return `UnsafeRow`s already, so an
 * input gets a projection only if it returns other rows.
 */
private[skewext] final class UnsafeInputs(inputTypes: Seq[Seq[DataType]]) {

  private[this] val projections = new Array[UnsafeProjection](inputTypes.size)

  def apply(input: Int, row: InternalRow): UnsafeRow = row match {
    case unsafe: UnsafeRow => unsafe
    case other =>
      if (projections(input) == null) {
        projections(input) = UnsafeProjection.create(inputTypes(input).toArray)
      }
      projections(input)(other)
  }

  /** The same for all rows of an input. Blocks of columns remain blocks. */
  def all(input: Int, rows: Iterator[InternalRow]): Iterator[InternalRow] = rows match {
    case _: ShuffledColumns => rows
    case other => other.map(apply(input, _))
  }
}
