package io.github.skewext.rows

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.skewext.{SparkShims, TaskInternals}

/**
 * Groups rows by merging sorted inputs. A subclass defines their order and the rows of a group. It
 * uses little memory for any data:
 *
 *  - The first row of each input in a group is copied to a reused buffer, or read in its source. If
 *    no input has a second row of the key, nothing else is stored.
 *  - If one input has more rows, they are streamed.
 *  - If several inputs have more rows, these are read in lockstep into spillable arrays until only
 *    one input has rows left. This is the input with the most rows. Its other rows are streamed,
 *    and each is combined with the product of the other inputs.
 *
 * @param streams the input that is streamed if it and others have several rows; -1 for the one with
 *                the most rows.
 */
private[skewext] abstract class SortMergeGroups(
    numFields: Array[Int],
    single: Array[Boolean],
    groupRowsInMemory: Int,
    streams: Int = -1)
    extends KeyGroups {

  protected[this] final val n = numFields.length

  override val rows = new Array[UnsafeRow](n)

  /** The cursors that the current group reads, one per input. */
  protected[this] final var sources: Array[RowCursor] = Array.fill(n)(RowCursor.empty)

  /** A copy of the first row of each input in the group. */
  protected[this] final val first = numFields.map(UnsafeRow.createFromByteArray(0, _))

  /** Whether the input's source is at a further row of the group. */
  private[this] val more = new Array[Boolean](n)
  private[this] var numMore = 0

  /** The input whose rows are streamed, or -1 if every input has at most one row. */
  private[this] var streamed = -1
  private[this] var streamedBuffer: Iterator[UnsafeRow] = Iterator.empty

  /** Whether the streamed row of the current combination is the current row of its source. */
  private[this] var shownInSource = false
  private[this] val buffers = new Array[TaskInternals.RowArray](n)

  /** The inputs with several rows, without the streamed one, and the position in their product. */
  private[this] val repeated = new Array[Int](n)
  private[this] var numRepeated = 0
  private[this] val repeatedRows = new Array[Iterator[UnsafeRow]](n)
  private[this] var changed = 0
  private[this] var moved = false

  /**
   * Moves to the next group and takes the first row of each of its inputs. Returns false after the
   * last.
   */
  protected[this] def openGroup(): Boolean

  /**
   * Moves the source to its next row of the group, beginning with its current row. Returns false if
   * there is none.
   */
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
    moved = false
    (streamed >= 0 && advanceRepeated()) || nextOuter()
  }

  /**
   * Of two inputs: moves to the next row of the outer one, past the other combinations of the current
   * one. Returns false after the last.
   */
  def nextOuter(): Boolean = {
    // Any input may be the streamed one, and the others restart for each of its rows.
    changed = 0
    moved = true
    if (streamed < 0) {
      false
    } else if (streamedBuffer.hasNext) {
      rows(streamed) = streamedBuffer.next()
      true
    } else {
      // The combination may refer to the current row of the source, so the source advances only
      // now.
      if (shownInSource) {
        sources(streamed).advance()
        more(streamed) = seek(streamed)
      }
      shownInSource = more(streamed)
      if (shownInSource) rows(streamed) = sources(streamed).row
      shownInSource
    }
  }

  /** The same, after which the other input is at its first row. */
  def skipToOuter(): Boolean = {
    var r = 0
    while (r < numRepeated) {
      // A file is closed at its end, or only when the task ends.
      if (buffers(repeated(r)).spillSize > 0) repeatedRows(r).foreach(_ => ())
      restart(r)
      r += 1
    }
    nextOuter()
  }

  override def firstChanged: Int = changed

  /**
   * Of two inputs, the one whose rows change slowest: each of its rows is combined with all rows of
   * the other one before its next row follows.
   */
  def outer: Int = math.max(0, streamed)

  /** After `nextCombination`: whether the next row of the outer input has followed. */
  def outerMoved: Boolean = moved

  /**
   * Of two inputs, the current key's rows of the one that is not outer, in the order of the
   * combinations. Each is valid until the next one.
   */
  def innerRows: Iterator[UnsafeRow] = {
    val inner = 1 - outer
    if (numRepeated > 0) buffers(inner).generateIterator() else Iterator(first(inner))
  }

  /** The number of these rows. */
  def numInner: Long = if (numRepeated > 0) buffers(1 - outer).length else 1L

  override def spillSize: Long = buffers.iterator.filter(_ != null).map(_.spillSize).sum

  /** Frees memory and files. No method may be called afterwards. */
  def free(): Unit = buffers.foreach(buffer => if (buffer != null) buffer.clear())

  /** Whether an input of the current group has rows besides those taken. */
  protected[this] final def anyMore: Boolean = numMore > 0

  /** Takes the first row of an input and checks whether it has more. */
  protected[this] final def take(input: Int): Unit = {
    val source = sources(input)
    first(input).copyFrom(source.row)
    rows(input) = first(input)
    source.advance()
    more(input) = seek(input)
    if (more(input) && !single(input)) numMore += 1
  }

  /**
   * Takes the first row of the group's last input without a copy. No other input may have a second
   * row. The source advances after the row has been used, so only then it is known whether there
   * are more.
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

  /** Streams the other rows of the only input with several. */
  private def streamOne(): Unit = {
    streamed = 0
    while (!more(streamed) || single(streamed)) streamed += 1
    streamedBuffer = Iterator.empty
    shownInSource = false
  }

  /**
   * Reads the inputs with more rows into their buffers in lockstep, until at most one has rows
   * left.
   */
  private def bufferAllButLargest(): Unit = {
    beginBuffers()
    fillBuffers()
    streamed = lastRead()
    numRepeated = dropFromRepeated(streamed)
    streamedBuffer = buffers(streamed).generateIterator()
    shownInSource = false
    rows(streamed) = streamedBuffer.next()
    var r = 0
    while (r < numRepeated) {
      restart(r)
      r += 1
    }
  }

  private def beginBuffers(): Unit = {
    var i = 0
    while (i < n) {
      if (more(i) && !single(i)) {
        if (buffers(i) == null) buffers(i) = SparkShims.rowArray(groupRowsInMemory)
        buffers(i).add(first(i))
        repeated(numRepeated) = i
        numRepeated += 1
      }
      i += 1
    }
  }

  private def fillBuffers(): Unit =
    while (numMore > 1) {
      var r = 0
      while (r < numRepeated) {
        val input = repeated(r)
        if (more(input) && input != streams) {
          buffers(input).add(sources(input).row)
          sources(input).advance()
          more(input) = seek(input)
          if (!more(input)) numMore -= 1
        }
        r += 1
      }
    }

  /**
   * The input with rows left. If the last inputs ended together, all their rows are in buffers, and
   * any of them can be streamed.
   */
  private def lastRead(): Int = {
    var last = repeated(0)
    var r = 0
    while (r < numRepeated) {
      if (more(repeated(r))) last = repeated(r)
      r += 1
    }
    last
  }

  /** `repeated` keeps the inputs whose product is returned for every streamed row. */
  private def dropFromRepeated(input: Int): Int = {
    var kept = 0
    var r = 0
    while (r < numRepeated) {
      if (repeated(r) != input) {
        repeated(kept) = repeated(r)
        kept += 1
      }
      r += 1
    }
    kept
  }

  private def restart(r: Int): Unit = {
    repeatedRows(r) = buffers(repeated(r)).generateIterator()
    rows(repeated(r)) = repeatedRows(r).next()
  }

  /**
   * Moves to the next combination like an odometer; the last input turns fastest. After the last
   * combination it returns false and all inputs are at their first row.
   */
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
