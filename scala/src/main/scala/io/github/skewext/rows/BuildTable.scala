package io.github.skewext.rows

import org.apache.spark.memory.SparkOutOfMemoryError
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.array.LongArray

/**
 * A hash table over all rows of one input in a [[RowChunks]], the build side of a join. Rows of the
 * other input are looked up in it by their hash.
 *
 * A slot holds 24 bits of a hash and the pointer to a record. Rows with the same bits form a chain:
 * the word of a record that held its hash then points to the next record. So the table takes no
 * memory for each row besides its slot.
 * {{{
 * slot:   low 24 bits of the hash | pointer to a record (40 bits); 0 if it is free
 * record: pointer to the next record of the chain | size, mark | UnsafeRow
 * }}}
 * The high bits of a hash choose the slot, as they choose the bucket in [[RowChunks]]. So the rows
 * of a bucket have adjacent slots, which are in the processor's cache while they are filled.
 *
 * Records of a chain may have different keys. The caller compares them.
 *
 * @param isOneChain whether all rows have one hash.
 */
private[skewext] final class BuildTable(
    input: Int,
    chunks: RowChunks,
    isOneChain: Boolean = false) {

  import BuildTable._
  import RowChunks.{CacheLine, ChunkHeader, NumBuckets, PointerBits, RecordHeader}

  private[this] var slots: LongArray = _
  private[this] var base: AnyRef = _
  private[this] var offset = 0L
  private[this] var mask = 0
  private[this] var shift = 0
  private[this] var touched = 0L

  /** The last record of the chain that `dropMarked` has passed and left in it; 0 if there is none. */
  private[this] var kept = 0L

  // The position of `nextRow`.
  private[this] var bucket = -1
  private[this] var chunk = 0L
  private[this] var record = 0L
  private[this] var recordsEnd = 0L
  private[this] var recordsBase: AnyRef = _

  /** Allocates the table. Returns false if there is no memory, or if there are too many rows. */
  def allocate(): Boolean = {
    val wanted = slotsFor(if (isOneChain) 1 else chunks.numRows)
    if (wanted > MaxSlots) return false
    try {
      slots = chunks.allocateArray(wanted)
      base = slots.memoryBlock().getBaseObject
      offset = slots.memoryBlock().getBaseOffset
      mask = wanted.toInt - 1
      shift = 64 - java.lang.Long.numberOfTrailingZeros(wanted)
      chunks.notePeak()
      true
    } catch {
      case _: SparkOutOfMemoryError => false
    }
  }

  def free(): Unit = {
    if (slots != null) chunks.freeArray(slots)
    slots = null
  }

  /** Inserts all rows. From now on, their records have no hashes. */
  def fill(check: () => Unit): Unit = {
    bucket = -1
    chunk = 0
    record = 0
    recordsEnd = 0
    Platform.setMemory(base, offset, (mask + 1L) << 3, 0)
    var b = 0
    while (b < NumBuckets) {
      check()
      var pointer = chunks.firstChunk(input, b)
      while (pointer != 0) {
        pointer = fillFrom(pointer)
      }
      b += 1
    }
  }

  /** Inserts the rows of a chunk. Returns the bucket's next chunk. */
  private def fillFrom(pointer: Long): Long = {
    val rows = chunks.baseOf(pointer)
    val start = chunks.offsetOf(pointer)
    val end = start + Platform.getLong(rows, start + 8)
    var at = start + ChunkHeader
    while (at < end) {
      val hash = Platform.getLong(rows, at)
      val slot = slotOf(hash)
      Platform.putLong(rows, at, Platform.getLong(base, slot) & PointerMask)
      Platform.putInt(rows, at + 12, 0)
      Platform.putLong(base, slot, (hash << PointerBits) | (pointer + ((at - start) >>> 3)))
      at += RecordHeader + Platform.getInt(rows, at + 8)
    }
    Platform.getLong(rows, start)
  }

  /** The first record of the chain for a hash, or 0. */
  def first(hash: Long): Long = Platform.getLong(base, slotOf(hash)) & PointerMask

  /** The address of the slot that has the bits of a hash, or else of the free one for them. */
  private def slotOf(hash: Long): Long = {
    val tag = hash << PointerBits
    var s = hash >>> shift
    var word = Platform.getLong(base, offset + (s << 3))
    while (word != 0 && ((word ^ tag) & TagMask) != 0) {
      s = (s + 1) & mask
      word = Platform.getLong(base, offset + (s << 3))
    }
    offset + (s << 3)
  }

  /**
   * The same for `count` hashes from `from` on. The reads of the table, and then those of the
   * records, do not depend on each other, so the processor waits for many cache misses at once.
   */
  def first(hashes: Array[Long], from: Int, count: Int, found: Array[Long]): Unit = {
    var i = 0
    while (i < count) {
      found(i) = first(hashes(from + i))
      i += 1
    }
    if (mask >= CachedSlots) {
      var sum = 0L
      i = 0
      while (i < count) {
        val pointer = found(i)
        if (pointer != 0) {
          val rows = chunks.baseOf(pointer)
          val at = chunks.offsetOf(pointer)
          sum += Platform.getInt(rows, at + 8) + Platform.getLong(rows, at + CacheLine)
        }
        i += 1
      }
      touched += sum
    }
  }

  /** The record after this one in its chain, or 0. */
  def next(pointer: Long): Long =
    Platform.getLong(chunks.baseOf(pointer), chunks.offsetOf(pointer))

  /** Begins with the first record of a chain, for `dropMarked`. */
  def beginChain(): Unit = kept = 0

  /**
   * Passes the next record of a chain, and drops it from the chain if it has a mark. The first one
   * stays, because a slot refers to it.
   */
  def dropMarked(pointer: Long): Unit =
    if (kept != 0 && isMarked(pointer)) {
      Platform.putLong(chunks.baseOf(kept), chunks.offsetOf(kept), next(pointer))
    } else {
      kept = pointer
    }

  def pointTo(row: UnsafeRow, pointer: Long): Unit = chunks.pointTo(row, pointer)

  /** Whether a record has a mark. */
  def isMarked(pointer: Long): Boolean =
    Platform.getInt(chunks.baseOf(pointer), chunks.offsetOf(pointer) + 12) != 0

  /** Marks a record. Returns whether it had no mark. */
  def mark(pointer: Long): Boolean = {
    val rows = chunks.baseOf(pointer)
    val at = chunks.offsetOf(pointer) + 12
    val isNew = Platform.getInt(rows, at) == 0
    if (isNew) Platform.putInt(rows, at, 1)
    isNew
  }

  /** Moves to the next of all rows and points `row` to it. Returns false after the last. */
  def nextRow(row: UnsafeRow): Boolean = {
    while (record >= recordsEnd) {
      while (chunk == 0) {
        // Another call returns false again.
        if (bucket >= NumBuckets - 1) return false
        bucket += 1
        chunk = chunks.firstChunk(input, bucket)
      }
      recordsBase = chunks.baseOf(chunk)
      val start = chunks.offsetOf(chunk)
      recordsEnd = start + Platform.getLong(recordsBase, start + 8)
      record = start + ChunkHeader
      chunk = Platform.getLong(recordsBase, start)
    }
    val size = Platform.getInt(recordsBase, record + 8)
    row.pointTo(recordsBase, record + RecordHeader, size)
    isMarked = Platform.getInt(recordsBase, record + 12) != 0
    record += RecordHeader + size
    true
  }

  /** Whether the row of the last `nextRow` has a mark. */
  var isMarked = false
}

private object BuildTable {
  private final val PointerMask = (1L << RowChunks.PointerBits) - 1
  private final val TagMask = ~PointerMask
  private final val MaxSlots = 1L << 27

  /** A table of so many slots, with its rows, is in the processor's caches. */
  private final val CachedSlots = 4096

  /** A power of two, so that at most two thirds of the slots are used. */
  private def slotsFor(rows: Long): Long =
    math.max(256L, java.lang.Long.highestOneBit(math.max(1L, rows * 3 / 2 - 1)) << 1)
}
