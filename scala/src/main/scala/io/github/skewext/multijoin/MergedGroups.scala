package io.github.skewext.multijoin

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.skewext.SpillableRowArray

/**
 * Groups rows by merging inputs that are ordered, whatever the order is: a subclass says which rows
 * come next and belong to one run. Needs hardly any memory of its own, whatever the data:
 *
 *  - The first row of an input in a group is copied to a buffer that is used again. If no input has
 *    a second row of the key, that is all.
 *  - Where inputs have more rows, they are read in lockstep into spillable arrays, until only one
 *    input has rows left. That is the largest, and the rest of it is streamed: for every row of it
 *    the product of the others comes out.
 *  - Rows that are in the run but do not have the key (a collision of hashes) are set aside, in
 *    spillable arrays too, and form groups of their own before the next run is looked at.
 */
private[multijoin] abstract class MergedGroups(
    keys: JoinKeys,
    numFields: Array[Int],
    single: Array[Boolean],
    groupRowsInMemory: Int)
    extends KeyGroups {

  protected[this] final val n = numFields.length

  /** The inputs, each in order. */
  protected[this] final val mainSources = Array.fill[RunSource](n)(RunSource.empty)

  override val rows = new Array[UnsafeRow](n)

  // The current group.
  private[this] var sources = mainSources

  /** The first input of the current group; its first row has the group's key. */
  private[this] var reference = 0
  private[this] val first = numFields.map(UnsafeRow.createFromByteArray(0, _))

  /** Whether the input's source stands at one more row of the group. */
  private[this] val more = new Array[Boolean](n)

  /** How many of these inputs have rows that take part. */
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

  // Rows of other keys with the same hash; two sets, as groups formed of one set aside to the other.
  private[this] var leftovers = new Array[SpillableRowArray](n)
  private[this] var nextLeftovers = new Array[SpillableRowArray](n)
  private[this] var anyLeftover = false

  /** Goes to the run that comes next in the main sources; false if all are at their ends. */
  protected[this] def openNextRun(): Boolean

  /** Whether the source stands at a row of the run. */
  protected[this] def inRun(source: RunSource): Boolean

  /** Whether the key of the run has a null, so that each of its rows is alone. */
  protected[this] def runHasNull: Boolean

  override def keyHasNull: Boolean = runHasNull

  override def nextGroup(): Boolean = {
    skipRestOfGroup()
    if (anyLeftover) {
      openLeftovers()
    } else {
      sources = mainSources
      if (!openNextRun()) return false
    }
    findMembers()
    if (numMore == 0) {
      streamed = -1
      numRepeated = 0
    } else {
      bufferAllButLargest()
    }
    true
  }

  override def nextCombination(): Boolean = {
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

  override def spillSize: Long =
    (buffers.iterator ++ leftovers ++ nextLeftovers).filter(_ != null).map(_.spillSize).sum

  /** Frees memory and files; no more groups may be asked for. */
  def free(): Unit =
    (buffers.iterator ++ leftovers ++ nextLeftovers).filter(_ != null).foreach(_.clear())

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

  private def openLeftovers(): Unit = {
    val opened = leftovers
    leftovers = nextLeftovers
    nextLeftovers = opened
    leftovers.foreach(array => if (array != null) array.clear())
    anyLeftover = false
    sources = opened.zip(numFields).map { case (array, fields) =>
      if (array == null || array.isEmpty) RunSource.empty
      else RunSource.sameRun(array.iterator, fields)
    }
  }

  /** Takes the first row of every input that has the key, and sees which have more of them. */
  private def findMembers(): Unit = {
    reference = -1
    numMore = 0
    var i = 0
    while (i < n) {
      rows(i) = null
      if (reference < 0) {
        if (inRun(sources(i))) {
          reference = i
          take(i)
        }
      } else if (!runHasNull && seek(i)) {
        take(i)
      }
      i += 1
    }
  }

  private def take(input: Int): Unit = {
    first(input).copyFrom(sources(input).row)
    rows(input) = first(input)
    sources(input).advance()
    more(input) = !runHasNull && seek(input)
    if (more(input) && !single(input)) numMore += 1
  }

  /** Goes to the next row of the group's key, from the current row on; sets others aside. */
  private def seek(input: Int): Boolean = {
    val source = sources(input)
    while (inRun(source)) {
      if (keys.equal(reference, first(reference), input, source.row)) {
        return true
      }
      if (leftovers(input) == null) {
        leftovers(input) = new SpillableRowArray(groupRowsInMemory)
      }
      leftovers(input).add(source.row)
      anyLeftover = true
      source.advance()
    }
    false
  }

  /**
   * Reads the inputs with more rows in lockstep into their buffers, until at most one has rows left.
   */
  private def bufferAllButLargest(): Unit = {
    numRepeated = 0
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
        return true
      }
      restart(r)
      r -= 1
    }
    false
  }
}
