package io.github.skewext.execution.grouping

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.skewext.SpillableRowArray

/**
 * Groups rows by merging inputs that are ordered, whatever the order is: a subclass says which rows
 * are a group. Needs hardly any memory of its own, whatever the data:
 *
 *  - The first row of an input in a group is copied to a buffer that is used again, or shown where
 *    it stands. If no input has a second row of the key, that is all.
 *  - If one input has more rows, they are streamed.
 *  - Where several have, they are read in lockstep into spillable arrays, until only one input has
 *    rows left. That is the largest, and the rest of it is streamed: for every row of it the
 *    product of the others comes out.
 */
private[skewext] abstract class SortMergeGroups(
    numFields: Array[Int],
    single: Array[Boolean],
    groupRowsInMemory: Int)
    extends KeyGroups {

  protected[this] final val n = numFields.length

  override val rows = new Array[UnsafeRow](n)

  /** What the current group's rows come from. */
  protected[this] final var sources: Array[RowCursor] = Array.fill(n)(RowCursor.empty)

  /** The first row of each input in the group, where it was copied. */
  protected[this] final val first = numFields.map(UnsafeRow.createFromByteArray(0, _))

  /** Whether the input's source stands at one more row of the group. */
  private[this] val more = new Array[Boolean](n)
  private[this] var numMore = 0

  /** The input whose rows are streamed, or -1 where every input has at most one row. */
  private[this] var streamed = -1
  private[this] var streamedBuffer: Iterator[UnsafeRow] = Iterator.empty

  /** Whether the streamed row of the current combination is the one its source stands at. */
  private[this] var shownInSource = false
  private[this] val buffers = new Array[SpillableRowArray](n)

  /** The inputs with several rows that are not streamed, and where their product stands. */
  private[this] val repeated = new Array[Int](n)
  private[this] var numRepeated = 0
  private[this] val repeatedRows = new Array[Iterator[UnsafeRow]](n)
  private[this] var changed = 0

  /** Goes to the next group, and takes the first row of each input in it; false after the last. */
  protected[this] def openGroup(): Boolean

  /** Goes to the input's next row of the group, from its current row on; false if there is none. */
  protected[this] def seek(input: Int): Boolean

  override def nextGroup(): Boolean = {
    skipRestOfGroup()
    java.util.Arrays.fill(rows.asInstanceOf[Array[AnyRef]], null)
    streamed = -1
    numRepeated = 0
    numMore = 0
    val found = openGroup()
    if (numMore > 1) bufferAllButLargest()
    else if (numMore == 1) streamOne()
    found
  }

  override def nextCombination(): Boolean = {
    // The streamed input may be any, and the others begin anew for each of its rows.
    changed = 0
    if (streamed < 0) {
      false
    } else if (advanceRepeated()) {
      true
    } else if (streamedBuffer.hasNext) {
      rows(streamed) = streamedBuffer.next()
      true
    } else {
      // A row is shown where it stands in the source, so the source goes on only when the next
      // one is asked for.
      if (shownInSource) {
        sources(streamed).advance()
        more(streamed) = seek(streamed)
      }
      shownInSource = more(streamed)
      if (shownInSource) rows(streamed) = sources(streamed).row
      shownInSource
    }
  }

  override def firstChanged: Int = changed

  override def spillSize: Long = buffers.iterator.filter(_ != null).map(_.spillSize).sum

  /** Frees memory and files; no more groups may be asked for. */
  def free(): Unit = buffers.foreach(buffer => if (buffer != null) buffer.clear())

  /** Whether an input that was taken in the current group has more rows than that one. */
  protected[this] final def anyMore: Boolean = numMore > 0

  /** Takes the first row of an input, and sees whether it has more. */
  protected[this] final def take(input: Int): Unit = {
    val source = sources(input)
    first(input).copyFrom(source.row)
    rows(input) = first(input)
    source.advance()
    more(input) = seek(input)
    if (more(input) && !single(input)) numMore += 1
  }

  /**
   * Takes the first row of the group's last input without a copy, if no other has a second one: only
   * when it has been used the source goes on. Whether there are more of them is seen then.
   */
  protected[this] final def takeWhereItStands(input: Int): Unit = {
    rows(input) = sources(input).row
    streamed = input
    more(input) = true
    streamedBuffer = Iterator.empty
    shownInSource = true
  }

  private def skipRestOfGroup(): Unit = {
    var i = 0
    while (i < n) {
      while (more(i)) {
        sources(i).advance()
        more(i) = seek(i)
      }
      if (buffers(i) != null) buffers(i).clear()
      i += 1
    }
  }

  /** Streams the rows of the one input that has several, after the first. */
  private def streamOne(): Unit = {
    streamed = 0
    while (!more(streamed) || single(streamed)) streamed += 1
    streamedBuffer = Iterator.empty
    shownInSource = false
  }

  /**
   * Reads the inputs with more rows in lockstep into their buffers, until at most one has rows left.
   */
  private def bufferAllButLargest(): Unit = {
    var i = 0
    while (i < n) {
      if (more(i) && !single(i)) {
        if (buffers(i) == null) buffers(i) = new SpillableRowArray(groupRowsInMemory)
        buffers(i).add(first(i))
        repeated(numRepeated) = i
        numRepeated += 1
      }
      i += 1
    }
    var r = 0
    while (numMore > 1) {
      r = 0
      while (r < numRepeated) {
        val input = repeated(r)
        if (more(input)) {
          buffers(input).add(sources(input).row)
          sources(input).advance()
          more(input) = seek(input)
          if (!more(input)) numMore -= 1
        }
        r += 1
      }
    }
    // Where the last inputs ended together, each has all its rows in its buffer: any will do.
    streamed = repeated(0)
    r = 0
    while (r < numRepeated) {
      if (more(repeated(r))) streamed = repeated(r)
      r += 1
    }
    // What is left of `repeated` are the inputs whose product comes out for every streamed row.
    var kept = 0
    r = 0
    while (r < numRepeated) {
      if (repeated(r) != streamed) {
        repeated(kept) = repeated(r)
        kept += 1
      }
      r += 1
    }
    numRepeated = kept
    streamedBuffer = buffers(streamed).iterator
    shownInSource = false
    rows(streamed) = streamedBuffer.next()
    r = 0
    while (r < numRepeated) {
      restart(r)
      r += 1
    }
  }

  private def restart(r: Int): Unit = {
    repeatedRows(r) = buffers(repeated(r)).iterator
    rows(repeated(r)) = repeatedRows(r).next()
  }

  /** Like an odometer; the last input turns fastest. After the last combination it is at the first. */
  private def advanceRepeated(): Boolean = {
    var r = numRepeated - 1
    while (r >= 0) {
      if (repeatedRows(r).hasNext) {
        rows(repeated(r)) = repeatedRows(r).next()
        changed = repeated(r)
        return true
      }
      restart(r)
      r -= 1
    }
    false
  }
}
