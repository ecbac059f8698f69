package io.github.skewext.execution.grouping

import java.util.concurrent.locks.ReentrantLock

import io.github.skewext.internal.{ColumnBlockRows, RowBytes}

import org.apache.spark.TaskContext
import org.apache.spark.memory.{MemoryConsumer, SparkOutOfMemoryError, TaskMemoryManager}
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.skewext.TaskInternals
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.memory.MemoryBlock

/**
 * Rows in memory, each copied once, on arrival, to one of `NumBuckets` buckets by the top bits of its
 * key's hash.
 *
 * Memory is Spark's, in pages. When there is no more of it, `insert` says so, and [[SpillableGroups]]
 * takes the rows away by `drain`; nothing here touches a disk.
 *
 * Layout: pages hold chunks, a chunk holds records of one bucket of one input.
 * {{{
 * chunk:  next chunk of the bucket (pointer) | bytes used | bytes in all | records...
 * record: hash of the key | size, input | UnsafeRow
 * }}}
 * A pointer is the number of the page and the offset in it, in words of 8 bytes.
 */
private[skewext] final class RowChunks(n: Int, memory: TaskMemoryManager, pageSize: Long)
    extends MemoryConsumer(memory, pageSize, memory.getTungstenMemoryMode) {

  import RowChunks._

  private[this] var pages = new Array[MemoryBlock](16)
  private[this] var pagesUsed = new Array[Long](16)
  private[this] var pageBases = new Array[AnyRef](16)
  private[this] var numPages = 0
  private[this] var pagePosition = 0L
  private[this] var pageEnd = 0L
  private[this] var peak = 0L
  private[this] var reserved = 0L

  /** What to do when others ask for memory while rows come in: to take the rows away by `drain`. */
  private[this] var giveWay: () => Unit = _
  private[this] var draining = false

  /**
   * Held by who brings rows. That thread asks for memory for others only between two insertions,
   * while it waits for an input; of what another thread asks for nothing is given meanwhile.
   */
  private[this] val busy = new ReentrantLock

  // The chunk that each bucket of each input writes to: index input * NumBuckets + bucket.
  private[this] val bases = new Array[AnyRef](n * NumBuckets)
  private[this] val positions = new Array[Long](n * NumBuckets)
  private[this] val ends = new Array[Long](n * NumBuckets)
  private[this] val firstChunks = new Array[Long](n * NumBuckets)
  private[this] val lastChunks = new Array[Long](n * NumBuckets)
  private[this] val counts = new Array[Int](n * NumBuckets)
  private[this] var inserted = 0L

  // Of rows that are copied at once: how long each is, and where it goes.
  private[this] lazy val rowSizes = new Array[Int](ColumnBlockRows.AtOnce)
  private[this] lazy val rowPages = new Array[Int](ColumnBlockRows.AtOnce)
  private[this] lazy val rowPlaces = new Array[Long](ColumnBlockRows.AtOnce)

  def numRows: Long = inserted

  def numRowsOf(input: Int): Int = {
    var sum = 0
    var b = 0
    while (b < NumBuckets) {
      sum += counts(input * NumBuckets + b)
      b += 1
    }
    sum
  }

  def numRowsOf(input: Int, bucket: Int): Int = counts(input * NumBuckets + bucket)

  def whenAskedForMemory(action: () => Unit): Unit = giveWay = action

  /**
   * Keeps other threads from taking the rows away. It may be any thread that brings rows: Python and
   * scripts are fed by one that is not the task's own.
   */
  def keeping[T](body: => T): T = {
    busy.lock()
    try body
    finally busy.unlock()
  }

  /**
   * Keeps memory back that going over to sorting needs to begin with, and that operators above find
   * free when the rows are all here. False if not even that is to be had.
   */
  def reserve(bytes: Long): Boolean = {
    reserved += acquireMemory(bytes)
    reserved >= bytes
  }

  def releaseReserve(): Unit = {
    freeMemory(reserved)
    reserved = 0
  }

  /** Copies a row whose key has no null; false, and nothing done, if there is no memory for it. */
  def insert(input: Int, hash: Long, row: UnsafeRow): Boolean = {
    val size = row.getSizeInBytes
    val at = place(input, hash, size)
    if (at == NoPlace) {
      false
    } else {
      val base = bases(input * NumBuckets + (hash >>> BucketShift).toInt)
      RowBytes.copy(row.getBaseObject, row.getBaseOffset, base, at, size)
      true
    }
  }

  /**
   * Copies the rows of a block, whose keys have no nulls and these hashes, as long as there is memory for
   * them; gives how many.
   */
  def insert(input: Int, rows: ColumnBlockRows, hashes: Array[Long]): Int = {
    var first = 0
    while (first < rows.numRows) {
      val count = math.min(ColumnBlockRows.AtOnce, rows.numRows - first)
      rows.sizes(first, count, rowSizes)
      var i = 0
      while (i < count) {
        val hash = hashes(first + i)
        val at = place(input, hash, rowSizes(i))
        if (at == NoPlace) {
          rows.copyTo(first, i, pageBases, rowPages, rowPlaces)
          return first + i
        }
        rowPlaces(i) = at
        rowPages(i) =
          (lastChunks(input * NumBuckets + (hash >>> BucketShift).toInt) >>> OffsetBits).toInt
        i += 1
      }
      rows.copyTo(first, count, pageBases, rowPages, rowPlaces)
      first += count
    }
    first
  }

  /** Makes the record of a row without the row itself; gives where that is to be, in its bucket's page. */
  private def place(input: Int, hash: Long, size: Int): Long = {
    val c = input * NumBuckets + (hash >>> BucketShift).toInt
    var position = positions(c)
    if (position + RecordHeader + size > ends(c)) {
      if (!newChunk(c, RecordHeader + size)) return NoPlace
      position = positions(c)
    }
    val base = bases(c)
    Platform.putLong(base, position, hash)
    Platform.putInt(base, position + 8, size)
    Platform.putInt(base, position + 12, input)
    positions(c) = position + RecordHeader + size
    counts(c) += 1
    inserted += 1
    position + RecordHeader
  }

  /** All rows are here, and from now on they are where they are. */
  def seal(): Unit = {
    giveWay = null
    sealChunks()
    notePeak()
  }

  def notePeak(): Unit = peak = math.max(peak, getUsed)

  def peakMemory: Long = math.max(peak, getUsed)

  /** The first of the chunks of a bucket of an input, or 0. */
  def firstChunk(input: Int, bucket: Int): Long = firstChunks(input * NumBuckets + bucket)

  /** A row by the pointer to its record. */
  def pointTo(row: UnsafeRow, record: Long): Unit = {
    val base = baseOf(record)
    val offset = offsetOf(record)
    row.pointTo(base, offset + RecordHeader, Platform.getInt(base, offset + 8))
  }

  def baseOf(pointer: Long): AnyRef = pageOf(pointer).getBaseObject

  def offsetOf(pointer: Long): Long =
    pageOf(pointer).getBaseOffset + ((pointer & OffsetMask) << 3)

  /**
   * Gives all rows away, input by input in the order in which they were inserted, and each page as
   * soon as its rows are gone. Afterwards it is empty, and other rows may be inserted.
   */
  def drain(take: (Int, Long, AnyRef, Long, Int) => Unit): Unit = {
    // Whoever takes the rows may ask for memory.
    draining = true
    sealChunks()
    notePeak()
    var p = 0
    while (p < numPages) {
      val page = pages(p)
      val base = page.getBaseObject
      var chunk = page.getBaseOffset + PageHeader
      val end = page.getBaseOffset + pagesUsed(p)
      while (chunk < end) {
        val chunkEnd = chunk + Platform.getLong(base, chunk + 8)
        var record = chunk + ChunkHeader
        while (record < chunkEnd) {
          val size = Platform.getInt(base, record + 8)
          take(
            Platform.getInt(base, record + 12),
            Platform.getLong(base, record),
            base,
            record + RecordHeader,
            size)
          record += RecordHeader + size
        }
        chunk += Platform.getInt(base, chunk + 16)
      }
      freePage(page)
      pages(p) = null
      pageBases(p) = null
      p += 1
    }
    clear()
    draining = false
  }

  private def clear(): Unit = {
    numPages = 0
    pagePosition = 0
    pageEnd = 0
    inserted = 0
    Seq(positions, ends, firstChunks, lastChunks).foreach(java.util.Arrays.fill(_, 0L))
    java.util.Arrays.fill(counts, 0)
  }

  /** Frees all memory; a task that ends early must not leak pages. */
  def free(): Unit = {
    notePeak()
    if (reserved > 0) releaseReserve()
    var p = 0
    while (p < numPages) {
      if (pages(p) != null) freePage(pages(p))
      pageBases(p) = null
      p += 1
    }
    numPages = 0
  }

  // Not to be waited for: who brings rows may itself wait for what the asking thread holds, Spark's
  // account of the task's memory.
  override def spill(size: Long, trigger: MemoryConsumer): Long =
    if ((trigger eq this) || !busy.tryLock()) {
      0L
    } else {
      try {
        val before = getUsed
        if (giveWay != null && !draining) giveWay()
        before - getUsed
      } finally {
        busy.unlock()
      }
    }

  private def newChunk(c: Int, needed: Int): Boolean = {
    val last = lastChunks(c)
    val grown = if (last == 0) FirstChunk else math.min(MaxChunk, 2 * sizeOfChunk(last))
    val size = math.max(grown, needed + ChunkHeader)
    if (pagePosition + size > pageEnd && !newPage(PageHeader + size + PageTail)) return false
    val page = pages(numPages - 1)
    val base = page.getBaseObject
    val chunk = pagePosition
    pagePosition += size
    val pointer = ((numPages - 1).toLong << OffsetBits) | ((chunk - page.getBaseOffset) >>> 3)
    if (last == 0) {
      firstChunks(c) = pointer
    } else {
      sealChunk(c)
      Platform.putLong(bases(c), offsetOf(last), pointer)
    }
    lastChunks(c) = pointer
    Platform.putLong(base, chunk, 0L)
    Platform.putLong(base, chunk + 8, ChunkHeader)
    Platform.putInt(base, chunk + 16, size)
    bases(c) = base
    positions(c) = chunk + ChunkHeader
    ends(c) = chunk + size
    true
  }

  private def sizeOfChunk(chunk: Long): Int = Platform.getInt(baseOf(chunk), offsetOf(chunk) + 16)

  /** Writes down how far the bucket's last chunk is filled. */
  private def sealChunk(c: Int): Unit = {
    val chunk = offsetOf(lastChunks(c))
    Platform.putLong(bases(c), chunk + 8, positions(c) - chunk)
  }

  private def sealChunks(): Unit = {
    var c = 0
    while (c < lastChunks.length) {
      if (lastChunks(c) != 0) sealChunk(c)
      c += 1
    }
    closePage()
  }

  private def newPage(needed: Int): Boolean = {
    if (numPages == MaxPages) return false
    val page =
      try {
        allocatePage(needed)
      } catch {
        case _: SparkOutOfMemoryError => return false
      }
    if (numPages == pages.length) {
      pages = java.util.Arrays.copyOf(pages, numPages * 2)
      pagesUsed = java.util.Arrays.copyOf(pagesUsed, numPages * 2)
      pageBases = java.util.Arrays.copyOf(pageBases, numPages * 2)
    }
    closePage()
    pages(numPages) = page
    pageBases(numPages) = page.getBaseObject
    numPages += 1
    pagePosition = page.getBaseOffset + PageHeader
    pageEnd = page.getBaseOffset + page.size() - PageTail
    true
  }

  private def closePage(): Unit = if (numPages > 0) {
    pagesUsed(numPages - 1) = pagePosition - pages(numPages - 1).getBaseOffset
  }

  private def pageOf(pointer: Long): MemoryBlock = pages((pointer >>> OffsetBits).toInt & PageMask)
}

private[skewext] object RowChunks {
  private final val BucketBits = 6
  final val NumBuckets = 1 << BucketBits
  private final val BucketShift = 64 - BucketBits

  /** The bits of a hash below those that choose the bucket. */
  final val HashBitsInBucket = BucketShift

  final val ChunkHeader = 24
  final val RecordHeader = 16
  private final val FirstChunk = 512
  private final val MaxChunk = 16384

  // A pointer: 13 bits of page, 27 bits of word in the page (1 GiB). The first word of a page stays
  // empty, so that no pointer is 0.
  final val PointerBits = 40
  private final val OffsetBits = 27
  private final val OffsetMask = (1L << OffsetBits) - 1
  private final val MaxPages = 1 << (PointerBits - OffsetBits)
  private final val PageMask = MaxPages - 1
  private final val PageHeader = 8

  /** Of no row, wherever pages are. */
  private final val NoPlace = 0L

  /** The line after a record may be read, wherever it ends. */
  final val CacheLine = 64
  private final val PageTail = CacheLine + 8

  /** With the header of the array that it is, no more than 4 MiB: G1 would give it 8. */
  private final val PageSize = (1L << 22) - Platform.LONG_ARRAY_OFFSET

  def apply(numInputs: Int, context: TaskContext): RowChunks = {
    val memory = TaskInternals.memory(context)
    new RowChunks(numInputs, memory, math.min(PageSize, memory.pageSizeBytes))
  }
}
