package io.github.skewext.rows

import java.io.IOException
import java.util.concurrent.TimeUnit
import java.util.concurrent.locks.{LockSupport, ReentrantLock}

import io.github.skewext.shuffle.{ColumnBlockRows, RowBytes}

import org.apache.spark.TaskContext
import org.apache.spark.memory.{MemoryConsumer, SparkOutOfMemoryError, TaskMemoryManager}
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.skewext.TaskInternals
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.memory.MemoryBlock

/**
 * Stores rows in memory, partitioned by their hash. Each row is copied once, when it is inserted,
 * to one of `NumBuckets` buckets, by the top bits of its key's hash (radix partitioning).
 *
 * The memory is pages of Spark's memory manager. If it is exhausted, `insert` copies no more rows,
 * and [[SpillableRows]] takes the rows away by `drain`. This class never writes to disk.
 *
 * A page holds chunks. A chunk holds records of one bucket of one input.
 * {{{
 * chunk:  next chunk of the bucket (pointer) | bytes used | bytes in all | records...
 * record: hash of the key | size, input | UnsafeRow
 * }}}
 * A pointer is a page number and an offset in the page, in words of 8 bytes.
 */
private[skewext] final class RowChunks(
    n: Int,
    memory: TaskMemoryManager,
    pageSize: Long,
    mostRows: Int = RowChunks.MostRows)
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

  /** Takes the rows away by `drain` when other consumers need memory during the inserts. */
  private[this] var giveWay: () => Unit = _
  private[this] var draining = false
  @volatile private[this] var failure: IOException = _

  /**
   * Held by the thread that inserts rows. A request for memory from another thread gets none
   * meanwhile. Between two inserts the same thread may request memory for other consumers, while it
   * reads an input.
   */
  private[this] val busy = new ReentrantLock

  /** The thread that has inserted rows. */
  @volatile private[this] var inserting: Thread = _

  // The current chunk of each bucket of each input, at index input * NumBuckets + bucket.
  private[this] var bases = new Array[AnyRef](n * NumBuckets)
  private[this] var positions = new Array[Long](n * NumBuckets)
  private[this] var ends = new Array[Long](n * NumBuckets)
  private[this] var firstChunks = new Array[Long](n * NumBuckets)
  private[this] var lastChunks = new Array[Long](n * NumBuckets)
  private[this] var counts = new Array[Int](n * NumBuckets)
  private[this] var inserted = 0L

  // For rows that are copied together: the size, page and offset of each.
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

  /** Size in bytes of the next page, unless a row needs more. */
  def nextPageSize: Long =
    if (numPages < SmallPages) pageSize else math.min(memory.pageSizeBytes, LargestPage)

  def whenAskedForMemory(action: () => Unit): Unit = giveWay = action

  /**
   * Runs `body`, while other threads cannot take the rows away. The inserting thread may be another
   * than the task's own: Python workers and scripts get their rows from a writer thread.
   */
  def keeping[T](body: => T): T = {
    busy.lock()
    inserting = Thread.currentThread()
    try body
    finally busy.unlock()
  }

  /**
   * Reserves memory for the start of sorting, and for operators above after the last insert.
   * Returns false if it cannot get all of it.
   */
  def reserve(bytes: Long): Boolean = {
    // After the end of the task nothing would free it.
    checkIntact()
    reserved += acquireMemory(bytes)
    reserved >= bytes
  }

  def releaseReserve(): Unit = {
    freeMemory(reserved)
    reserved = 0
  }

  /**
   * Copies a row whose key contains no null. Returns false, without effect, if there is no memory.
   */
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
   * Copies rows of a block until memory is exhausted. Their keys contain no null and have these
   * hashes. Returns the number of copied rows.
   */
  def insert(input: Int, rows: ColumnBlockRows, hashes: Array[Long]): Int = {
    val (sizes, places, pagesOf) = (rowSizes, rowPlaces, rowPages)
    var first = 0
    while (first < rows.numRows) {
      val count = math.min(ColumnBlockRows.AtOnce, rows.numRows - first)
      rows.sizes(first, count, sizes)
      var i = 0
      while (i < count) {
        val hash = hashes(first + i)
        val at = place(input, hash, sizes(i))
        if (at == NoPlace) {
          rows.copyTo(first, i, pageBases, pagesOf, places)
          return first + i
        }
        places(i) = at
        pagesOf(i) =
          (lastChunks(input * NumBuckets + (hash >>> BucketShift).toInt) >>> OffsetBits).toInt
        i += 1
      }
      rows.copyTo(first, count, pageBases, pagesOf, places)
      first += count
    }
    first
  }

  /**
   * Allocates a record and writes its header. Returns the address of the row, which the caller
   * writes to the page of its bucket, or `NoPlace` if there is no memory.
   */
  private def place(input: Int, hash: Long, size: Int): Long = {
    // With the headers of the row, its chunk and its page, the size would not fit an Int.
    if (size > RowChunks.MostRowBytes) return NoPlace
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

  /** Ends the inserts. From now on, rows keep their places. */
  def seal(): Unit = {
    giveWay = null
    checkIntact()
    sealChunks()
    notePeak()
  }

  def notePeak(): Unit = peak = math.max(peak, getUsed)

  def peakMemory: Long = math.max(peak, getUsed)

  /** The first chunk of a bucket of an input, or 0. */
  def firstChunk(input: Int, bucket: Int): Long = firstChunks(input * NumBuckets + bucket)

  /** Points `row` to the row of a record. */
  def pointTo(row: UnsafeRow, record: Long): Unit = {
    val base = baseOf(record)
    val offset = offsetOf(record)
    row.pointTo(base, offset + RecordHeader, Platform.getInt(base, offset + 8))
  }

  def baseOf(pointer: Long): AnyRef = pageOf(pointer).getBaseObject

  def offsetOf(pointer: Long): Long =
    pageOf(pointer).getBaseOffset + ((pointer & OffsetMask) << 3)

  /**
   * Passes all rows to `take`, one input after the other in the order of their insertion, and frees
   * each page after its last row. Afterwards it is empty and accepts other rows.
   */
  def drain(take: (Int, Long, AnyRef, Long, Int) => Unit): Unit = {
    checkIntact()
    // `take` may request memory, which must not start another drain.
    draining = true
    sealChunks()
    notePeak()
    try passAll(take)
    catch {
      case e: Throwable =>
        // Another consumer asked for memory, and may go on without it. No row may follow the others.
        failure = new IOException("The rows of a join could not be spilled.", e)
        free()
        throw e
    } finally {
      clear()
      draining = false
    }
  }

  private def passAll(take: (Int, Long, AnyRef, Long, Int) => Unit): Unit = {
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
  }

  /** Throws the error after which there are no rows any more. */
  def checkIntact(): Unit = if (failure != null) throw failure

  /**
   * Stops the inserts when the task ends. The thread that feeds a script does not end with its task
   * (`RDD.pipe`, TRANSFORM). It must not write to pages that have become another task's. Its next
   * chunk fails, and an insert takes microseconds, so it has left the pages after a while.
   */
  def stopInserts(): Unit = {
    if (failure == null) failure = new IOException("The task has ended.")
    pageEnd = 0
    java.util.Arrays.fill(ends, 0L)
    val thread = inserting
    if (thread != null && (thread ne Thread.currentThread()) && thread.isAlive) {
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(MillisToLeave))
    }
  }

  private def clear(): Unit = {
    numPages = 0
    pagePosition = 0
    pageEnd = 0
    inserted = 0
    Seq(positions, ends, firstChunks, lastChunks).foreach(java.util.Arrays.fill(_, 0L))
    java.util.Arrays.fill(counts, 0)
  }

  /** Frees all memory. A task that ends early must not leak pages. */
  def free(): Unit = {
    notePeak()
    if (reserved > 0) releaseReserve()
    var p = 0
    while (p < numPages) {
      if (pages(p) != null) freePage(pages(p))
      pages(p) = null
      pageBases(p) = null
      p += 1
    }
    numPages = 0
  }

  /** Frees all memory. Afterwards it is empty and accepts other rows. */
  def reset(): Unit = {
    free()
    clear()
  }

  /**
   * Drops the arrays of the buckets, after the last use: the memory manager of the task holds this
   * object until the task ends.
   */
  def dropBuckets(): Unit = {
    giveWay = null
    bases = null
    positions = null
    ends = null
    firstChunks = null
    lastChunks = null
    counts = null
    pages = null
    pageBases = null
    pagesUsed = null
  }

  // It does not wait for the lock. The inserting thread may itself wait for the lock of Spark's
  // `TaskMemoryManager`, which the requesting thread holds.
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
    checkIntact()
    if (inserted > mostRows) return false
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

  /** Writes the number of used bytes to the bucket's last chunk. */
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
        allocatePage(math.max(needed, nextPageSize))
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
  private final val BucketBits = 8
  final val NumBuckets = 1 << BucketBits
  private final val BucketShift = 64 - BucketBits

  /** Number of hash bits below those that choose the bucket. */
  final val HashBitsInBucket = BucketShift

  final val ChunkHeader = 24
  final val RecordHeader = 16
  private final val FirstChunk = 512
  private final val MaxChunk = 16384

  // A pointer has 13 bits for the page and 27 bits for the word in the page (1 GiB). The first word
  // of a page is unused, so that no pointer is 0.
  final val PointerBits = 40
  private final val OffsetBits = 27
  private final val OffsetMask = (1L << OffsetBits) - 1
  private final val PageMask = (1 << (PointerBits - OffsetBits)) - 1

  // Spark, too, numbers the pages of a task by 13 bits, and fails the task at the next page. The other
  // half is for sorters and other operators. After 4 GB the pages are as large as Spark's,
  // if a pointer reaches their ends.
  private final val MaxPages = (PageMask + 1) / 2
  private final val SmallPages = 1024
  private final val LargestPage = 1L << 26
  private final val PageHeader = 8

  /** Rows have numbers of type Int. Each bucket's last chunk gets some more. */
  private val MostRows = 1 << 30

  private final val MillisToLeave = 100L

  /** The address of no row, whether pages are on or off the heap. */
  private final val NoPlace = 0L

  private final val MostRowBytes = Int.MaxValue - 256

  /** Size of a cache line. The line after a record may be read, even at the end of a page. */
  final val CacheLine = 64
  private final val PageTail = CacheLine + 8

  /** At most 4 MiB with the header of the array. G1 would use 8 MiB for a larger one. */
  private final val PageSize = (1L << 22) - Platform.LONG_ARRAY_OFFSET

  /** Size in bytes of the first pages of a task. */
  def pageSize(context: TaskContext): Long =
    math.min(PageSize, TaskInternals.memory(context).pageSizeBytes)

  def apply(numInputs: Int, context: TaskContext): RowChunks =
    new RowChunks(numInputs, TaskInternals.memory(context), pageSize(context))
}
