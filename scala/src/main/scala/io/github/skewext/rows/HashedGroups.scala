package io.github.skewext.rows

import org.apache.spark.memory.SparkOutOfMemoryError
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.array.LongArray

/**
 * Groups rows in memory with hash tables. [[RowChunks]] partitions the rows into buckets by their
 * hash. After the last insert, this class builds one small hash table after the other, each over
 * one bucket of all inputs.
 *
 * A bucket and its table are meant to fit into the processor's cache. Sorting or hashing the whole
 * partition would read its rows in random order and spend the time on cache misses.
 *
 * If there is no memory for the tables, `finish` returns false, and [[SpillableRows]] moves the rows
 * to external sorters.
 */
private[skewext] final class HashedGroups(
    keys: JoinKeys,
    numFields: Array[Int],
    single: Array[Boolean],
    chunks: RowChunks,
    longsPerRow: Int = 0)
    extends KeyGroups {

  import HashedGroups._
  import RowChunks.{CacheLine, ChunkHeader, NumBuckets, PointerBits, RecordHeader}

  private[this] val n = numFields.length

  // The current bucket. `table` is a hash table of row numbers, which start at 1. `records` maps a
  // row number to the row's record, and `nexts` to another row with the same hash.
  private[this] var table: LongArray = _
  private[this] var records: LongArray = _
  private[this] var nexts: LongArray = _
  private[this] var bucket = -1
  private[this] var numSlots = 0
  private[this] var slot = 0

  /** Space for the caller, for the rows of the largest bucket. It has `longsPerRow` for each row. */
  var space: LongArray = _

  // The first rows of the next groups. Their records have been prefetched.
  private[this] val heads = new Array[Int](LookAhead)
  private[this] var numHeads = 0
  private[this] var head = 0
  private[this] var touched = 0L

  /** Whether the rows of the bucket are in the cache, because there are few. */
  private[this] var isInCache = false

  /**
   * The first row with the current group's hash and another key, or 0. It starts the next group.
   */
  private[this] var collided = 0

  // The current group: the first and the current row of each input.
  override val rows = new Array[UnsafeRow](n)
  private[this] val cursors = numFields.map(new UnsafeRow(_))
  private[this] val firstRows = new Array[Int](n)
  private[this] val currentRows = new Array[Int](n)
  private[this] var repeated = false
  private[this] var changed = 0

  private[this] val keyRow = numFields.map(new UnsafeRow(_))
  private[this] val otherRow = numFields.map(new UnsafeRow(_))

  /**
   * Ends the inserts and allocates the tables. Returns false if there is no memory for the largest
   * bucket, or if it has too many rows.
   */
  def finish(): Boolean = {
    chunks.seal()
    val largest = (0 until NumBuckets).map(rowsOf).max
    val wanted = slotsFor(largest)
    if (wanted > MaxSlots) return false
    try {
      table = chunks.allocateArray(wanted)
      records = chunks.allocateArray(largest + 1)
      nexts = chunks.allocateArray(largest / 2 + 1)
      if (longsPerRow > 0) space = chunks.allocateArray(longsPerRow * (largest + 1))
    } catch {
      case _: SparkOutOfMemoryError =>
        freeTables()
        return false
    }
    chunks.notePeak()
    true
  }

  private def freeTables(): Unit = {
    chunks.notePeak()
    Seq(table, records, nexts, space).filter(_ != null).foreach(chunks.freeArray)
    table = null
    records = null
    nexts = null
    space = null
  }

  override def nextGroup(): Boolean = {
    if (collided != 0) {
      openGroup(collided)
      return true
    }
    while (head == numHeads) {
      if (slot < numSlots) {
        lookAhead()
      } else if (!nextBucket()) {
        return false
      }
    }
    head += 1
    openGroup(heads(head - 1))
    true
  }

  private def nextBucket(): Boolean = {
    var b = bucket + 1
    while (b < NumBuckets && rowsOf(b) == 0) b += 1
    // `bucket` stays unchanged, so that another call returns false again.
    if (b == NumBuckets) return false
    bucket = b
    buildTable()
    true
  }

  /**
   * Collects the first rows of the next groups from the table, and prefetches their records by
   * reading a word or two of each. Records are in random order, so each read is a cache miss. The
   * reads do not depend on each other, so the processor waits for many of them at once.
   */
  private def lookAhead(): Unit = {
    val tableBase = table.memoryBlock().getBaseObject
    val tableOffset = table.memoryBlock().getBaseOffset
    val end = numSlots
    var found = 0
    var s = slot
    while (s < end && found < LookAhead) {
      val row = Platform.getLong(tableBase, tableOffset + (s.toLong << 3)).toInt
      if (row != 0) {
        heads(found) = row
        found += 1
      }
      s += 1
    }
    slot = s
    numHeads = found
    head = 0
    var sum = 0L
    var h = if (isInCache) found else 0
    while (h < found) {
      var row = heads(h)
      var left = LookAhead
      while (row != 0 && left > 0) {
        val record = records.get(row)
        val base = chunks.baseOf(record)
        val offset = chunks.offsetOf(record)
        sum += Platform.getInt(base, offset + 8) + Platform.getLong(base, offset + CacheLine)
        row = nextOf(row)
        left -= 1
      }
      h += 1
    }
    touched += sum
  }

  override def nextCombination(): Boolean = {
    if (!repeated) return false
    var i = n - 1
    while (i >= 0) {
      if (firstRows(i) != 0 && !single(i)) {
        val next = nextOf(currentRows(i))
        if (next != 0 && inputOf(records.get(next)) == i) {
          show(i, next)
          changed = i
          return true
        }
        show(i, firstRows(i))
      }
      i -= 1
    }
    false
  }

  /** The first row of an input in the current group, or 0. */
  def firstRow(input: Int): Int = firstRows(input)

  /** The row of the same input and group after this one, or 0. */
  def nextRow(input: Int, row: Int): Int = {
    val next = nextOf(row)
    if (next != 0 && inputOf(records.get(next)) == input) next else 0
  }

  /** Where a row is, for `pointTo`. It is valid until the rows are freed. */
  def placeOf(row: Int): Long = records.get(row)

  /** Points `row` to the row at a place. */
  def pointTo(row: UnsafeRow, place: Long): Unit = chunks.pointTo(row, place)

  override def firstChanged: Int = changed

  override def rowsStay: Boolean = true

  /** Rows with a null key are not inserted. */
  override def keyHasNull: Boolean = false

  override def spillSize: Long = 0L

  def peakMemory: Long = chunks.peakMemory

  /** Frees the tables and the rows. */
  def free(): Unit = {
    freeTables()
    chunks.free()
  }

  private def rowsOf(b: Int): Long = {
    var sum = 0L
    var i = 0
    while (i < n) {
      sum += chunks.numRowsOf(i, b)
      i += 1
    }
    sum
  }

  /**
   * Builds the table of the current bucket, in which rows with the same hash form a chain. It does
   * not compare keys, because that would read a record at a random place for every row. `openGroup`
   * compares them when it reads the records anyway.
   */
  private def buildTable(): Unit = {
    val numRows = rowsOf(bucket)
    isInCache = numRows <= CachedRows
    numSlots = slotsFor(numRows).toInt
    slot = 0
    val tableBase = table.memoryBlock().getBaseObject
    val tableOffset = table.memoryBlock().getBaseOffset
    Platform.setMemory(tableBase, tableOffset, numSlots * 8L, 0)
    val mask = numSlots - 1
    var row = 0
    var i = 0
    while (i < n) {
      val input = i.toLong << PointerBits
      var chunkPointer = chunks.firstChunk(i, bucket)
      while (chunkPointer != 0) {
        val base = chunks.baseOf(chunkPointer)
        val chunk = chunks.offsetOf(chunkPointer)
        val end = chunk + Platform.getLong(base, chunk + 8)
        var record = chunk + ChunkHeader
        while (record < end) {
          val hash = Platform.getLong(base, record)
          val tag = (hash >>> TagShift) << 32
          var s = tableOffset + ((hash.toInt & mask).toLong << 3)
          var word = Platform.getLong(tableBase, s)
          while (word != 0 && (word & TagMask) != tag) {
            s = tableOffset + ((((s - tableOffset) >>> 3) + 1 & mask) << 3)
            word = Platform.getLong(tableBase, s)
          }
          row += 1
          records.set(row, input | (chunkPointer + ((record - chunk) >>> 3)))
          // A new row becomes the head of its chain, so rows of one input are adjacent.
          setNext(row, word.toInt)
          Platform.putLong(tableBase, s, tag | row)
          record += RecordHeader + Platform.getInt(base, record + 8)
        }
        chunkPointer = Platform.getLong(base, chunk)
      }
      i += 1
    }
  }

  private def openGroup(first: Int): Unit = {
    var i = 0
    while (i < n) {
      rows(i) = null
      firstRows(i) = 0
      i += 1
    }
    repeated = false
    collided = 0
    val head = records.get(first)
    val headInput = inputOf(head)
    val headRow = keyRow(headInput)
    chunks.pointTo(headRow, head)
    firstRows(headInput) = first
    rows(headInput) = cursors(headInput)
    show(headInput, first)
    var last = first
    var lastCollided = 0
    var row = nextOf(first)
    while (row != 0) {
      val next = nextOf(row)
      val record = records.get(row)
      val input = inputOf(record)
      val other = otherRow(input)
      chunks.pointTo(other, record)
      if (keys.equal(headInput, headRow, input, other)) {
        if (lastCollided != 0) setNext(last, row)
        last = row
        if (firstRows(input) == 0) {
          firstRows(input) = row
          rows(input) = cursors(input)
          show(input, row)
        } else if (!single(input)) {
          repeated = true
        }
      } else {
        if (collided == 0) collided = row else setNext(lastCollided, row)
        lastCollided = row
      }
      row = next
    }
    if (lastCollided != 0) {
      setNext(last, 0)
      setNext(lastCollided, 0)
    }
  }

  private def show(input: Int, row: Int): Unit = {
    currentRows(input) = row
    chunks.pointTo(cursors(input), records.get(row))
  }

  private def nextOf(row: Int): Int = {
    val block = nexts.memoryBlock()
    Platform.getInt(block.getBaseObject, block.getBaseOffset + (row.toLong << 2))
  }

  private def setNext(row: Int, next: Int): Unit = {
    val block = nexts.memoryBlock()
    Platform.putInt(block.getBaseObject, block.getBaseOffset + (row.toLong << 2), next)
  }

  private def inputOf(record: Long): Int = (record >>> PointerBits).toInt
}

private object HashedGroups {

  // An entry of `records` holds the input above the pointer. A slot of `table` holds 32 bits of the
  // hash above a row number. These bits lie between those that choose the bucket and those that
  // choose the slot.
  private final val TagShift = RowChunks.HashBitsInBucket - 32
  private final val TagMask = ~0L << 32
  private final val MaxSlots = 1L << 27

  // About the number of cache misses that a processor handles at once.
  private final val LookAhead = 16

  /** So many rows of usual sizes are in the cache of a core after the table was built. */
  private final val CachedRows = 4096

  /** A power of two, so that at most two thirds of the slots are used. */
  private def slotsFor(rows: Long): Long =
    math.max(16L, java.lang.Long.highestOneBit(math.max(1L, rows * 3 / 2 - 1)) << 1)
}
