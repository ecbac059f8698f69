package io.github.skewext.multijoin

import org.apache.spark.TaskContext
import org.apache.spark.memory.{MemoryConsumer, SparkOutOfMemoryError, TaskMemoryManager}
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.skewext.TaskInternals
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.array.LongArray
import org.apache.spark.unsafe.memory.MemoryBlock

/**
 * Groups rows in memory. A row is copied once, on arrival, to one of `NumBuckets` buckets by the top
 * bits of its key's hash; when all rows are there, one small hash table after the other is built
 * over a bucket of all inputs. A bucket and its table are meant to fit the processor's cache: sorted
 * or hashed as a whole, the rows of a partition are read in an order that has nothing to do with
 * where they lie, and the time goes into waiting for memory.
 *
 * Memory is Spark's, in pages. When there is no more of it, `insert` or `finish` says so, and
 * [[SpillableGroups]] moves the rows to [[SortedGroups]] by `drain`; nothing here touches a disk.
 *
 * Layout: pages hold chunks, a chunk holds records of one bucket of one input.
 * {{{
 * chunk:  next chunk of the bucket (pointer) | bytes used | bytes in all | records...
 * record: hash of the key, then next record of the group (pointer) | size, input | UnsafeRow
 * }}}
 * A pointer is the number of the page and the offset in it, in words of 8 bytes.
 */
private[multijoin] final class HashedGroups(
    keys: JoinKeys,
    numFields: Array[Int],
    memory: TaskMemoryManager,
    pageSize: Long)
    extends MemoryConsumer(memory, pageSize, memory.getTungstenMemoryMode)
    with KeyGroups {

  import HashedGroups._

  private[this] val n = numFields.length

  private[this] var pages = new Array[MemoryBlock](16)
  private[this] var pagesUsed = new Array[Long](16)
  private[this] var numPages = 0
  private[this] var pagePosition = 0L
  private[this] var pageEnd = 0L
  private[this] var peak = 0L
  private[this] var reserved = 0L

  /**
   * What to do when others ask for memory while rows come in: to take the rows away by `drain`.
   * Only on the thread that brings the rows, which is then not in the middle of an insertion.
   */
  private[this] var giveWay: () => Unit = _
  private[this] var owner: Thread = _
  private[this] var draining = false

  // The chunk that each bucket of each input writes to: index input * NumBuckets + bucket.
  private[this] val bases = new Array[AnyRef](n * NumBuckets)
  private[this] val positions = new Array[Long](n * NumBuckets)
  private[this] val ends = new Array[Long](n * NumBuckets)
  private[this] val firstChunks = new Array[Long](n * NumBuckets)
  private[this] val lastChunks = new Array[Long](n * NumBuckets)
  private[this] val counts = new Array[Int](n * NumBuckets)
  private[this] var inserted = 0L

  // The table of the current bucket.
  private[this] var table: LongArray = _
  private[this] var bucket = -1
  private[this] var slot = 0
  private[this] var numSlots = 0

  // The current group: for every input its first and its current record.
  override val rows = new Array[UnsafeRow](n)
  private[this] val cursors = numFields.map(new UnsafeRow(_))
  private[this] val firstRecords = new Array[Long](n)
  private[this] val currentRecords = new Array[Long](n)
  private[this] var repeated = false

  private[this] val rowA = numFields.map(new UnsafeRow(_))
  private[this] val rowB = numFields.map(new UnsafeRow(_))

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

  def whenAskedForMemory(action: () => Unit): Unit = {
    giveWay = action
    owner = Thread.currentThread()
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
    val c = input * NumBuckets + (hash >>> BucketShift).toInt
    var position = positions(c)
    if (position + RecordHeader + size > ends(c)) {
      if (!newChunk(c, RecordHeader + size)) return false
      position = positions(c)
    }
    val base = bases(c)
    Platform.putLong(base, position, hash)
    Platform.putInt(base, position + 8, size)
    Platform.putInt(base, position + 12, input)
    copy(row.getBaseObject, row.getBaseOffset, base, position + RecordHeader, size)
    positions(c) = position + RecordHeader + size
    counts(c) += 1
    inserted += 1
    true
  }

  /** All rows are here. False if there is no memory for the largest bucket's table. */
  def finish(): Boolean = {
    // From now on rows are where the tables say.
    giveWay = null
    sealChunks()
    peak = math.max(peak, used)
    val largest = (0 until NumBuckets).map(rowsOf).max
    val wanted = slotsFor(largest)
    if (wanted > MaxSlots) return false
    try {
      table = allocateArray(wanted)
    } catch {
      case _: SparkOutOfMemoryError => return false
    }
    peak = math.max(peak, used)
    true
  }

  override def nextGroup(): Boolean = {
    while (true) {
      while (slot < numSlots) {
        val head = table.get(slot) & PointerMask
        slot += 1
        if (head != 0) {
          openGroup(head)
          return true
        }
      }
      do {
        bucket += 1
        if (bucket == NumBuckets) {
          // Asked again, it must say the same.
          bucket -= 1
          return false
        }
      } while (rowsOf(bucket) == 0)
      buildTable()
    }
    false
  }

  override def nextCombination(): Boolean = {
    if (!repeated) return false
    var i = n - 1
    while (i >= 0) {
      if (firstRecords(i) != 0) {
        val next = nextInGroup(currentRecords(i))
        if (next != 0 && inputOf(next) == i) {
          show(i, next)
          return true
        }
        show(i, firstRecords(i))
      }
      i -= 1
    }
    false
  }

  /** Rows with a null key are not inserted. */
  override def keyHasNull: Boolean = false

  override def spillSize: Long = 0L

  override def peakMemory: Long = math.max(peak, used)

  /**
   * Gives all rows away, input by input in the order in which they were inserted, and each page as
   * soon as its rows are gone. May only be called before the first group was asked for. Afterwards
   * it is empty, and other rows may be inserted.
   */
  def drain(take: (Int, Long, AnyRef, Long, Int) => Unit): Unit = {
    // Whoever takes the rows may ask for memory.
    draining = true
    sealChunks()
    peak = math.max(peak, used)
    if (table != null) {
      freeArray(table)
      table = null
    }
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
    peak = math.max(peak, used)
    if (reserved > 0) releaseReserve()
    if (table != null) {
      freeArray(table)
      table = null
    }
    var p = 0
    while (p < numPages) {
      if (pages(p) != null) freePage(pages(p))
      p += 1
    }
    numPages = 0
  }

  override def spill(size: Long, trigger: MemoryConsumer): Long =
    if ((trigger eq this) || giveWay == null || draining || (Thread.currentThread() ne owner)) {
      0L
    } else {
      val before = used
      giveWay()
      before - used
    }

  // Memory.

  private def newChunk(c: Int, needed: Int): Boolean = {
    val last = lastChunks(c)
    val grown = if (last == 0) FirstChunk else math.min(MaxChunk, 2 * sizeOfChunk(last))
    val size = math.max(grown, needed + ChunkHeader)
    if (pagePosition + size > pageEnd && !newPage(PageHeader + size)) return false
    val page = pages(numPages - 1)
    val base = page.getBaseObject
    val chunk = pagePosition
    pagePosition += size
    val pointer = ((numPages - 1).toLong << OffsetBits) | ((chunk - page.getBaseOffset) >>> 3)
    if (last == 0) {
      firstChunks(c) = pointer
    } else {
      seal(c)
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
  private def seal(c: Int): Unit = {
    val chunk = offsetOf(lastChunks(c))
    Platform.putLong(bases(c), chunk + 8, positions(c) - chunk)
  }

  private def sealChunks(): Unit = {
    var c = 0
    while (c < lastChunks.length) {
      if (lastChunks(c) != 0) seal(c)
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
    }
    closePage()
    pages(numPages) = page
    numPages += 1
    pagePosition = page.getBaseOffset + PageHeader
    pageEnd = page.getBaseOffset + page.size()
    true
  }

  private def closePage(): Unit = if (numPages > 0) {
    pagesUsed(numPages - 1) = pagePosition - pages(numPages - 1).getBaseOffset
  }

  private def baseOf(pointer: Long): AnyRef =
    pages((pointer >>> OffsetBits).toInt).getBaseObject

  private def offsetOf(pointer: Long): Long =
    pages((pointer >>> OffsetBits).toInt).getBaseOffset + ((pointer & OffsetMask) << 3)

  // Groups.

  private def rowsOf(b: Int): Long = {
    var sum = 0L
    var i = 0
    while (i < n) {
      sum += counts(i * NumBuckets + b)
      i += 1
    }
    sum
  }

  private def buildTable(): Unit = {
    numSlots = slotsFor(rowsOf(bucket)).toInt
    slot = 0
    val table = this.table
    val tableBase = table.memoryBlock().getBaseObject
    val tableOffset = table.memoryBlock().getBaseOffset
    Platform.setMemory(tableBase, tableOffset, numSlots * 8L, 0)
    val mask = numSlots - 1
    var i = 0
    while (i < n) {
      var chunkPointer = firstChunks(i * NumBuckets + bucket)
      while (chunkPointer != 0) {
        val base = baseOf(chunkPointer)
        val chunk = offsetOf(chunkPointer)
        val end = chunk + Platform.getLong(base, chunk + 8)
        var record = chunk + ChunkHeader
        while (record < end) {
          val hash = Platform.getLong(base, record)
          val size = Platform.getInt(base, record + 8)
          val tag = (hash << 8) & TagMask
          val pointer = chunkPointer + ((record - chunk) >>> 3)
          var s = hash.toInt & mask
          var word = Platform.getLong(tableBase, tableOffset + (s.toLong << 3))
          var searching = word != 0
          while (searching) {
            if ((word & TagMask) == tag && sameKey(i, base, record, size, word & PointerMask)) {
              searching = false
            } else {
              s = (s + 1) & mask
              word = Platform.getLong(tableBase, tableOffset + (s.toLong << 3))
              searching = word != 0
            }
          }
          // The latest record heads the list, so the records of one input stand together.
          Platform.putLong(base, record, word & PointerMask)
          Platform.putLong(tableBase, tableOffset + (s.toLong << 3), tag | pointer)
          record += RecordHeader + size
        }
        chunkPointer = Platform.getLong(base, chunk)
      }
      i += 1
    }
  }

  private def sameKey(input: Int, base: AnyRef, record: Long, size: Int, other: Long): Boolean = {
    val otherBase = baseOf(other)
    val otherOffset = offsetOf(other)
    val otherInput = Platform.getInt(otherBase, otherOffset + 12)
    val a = rowA(input)
    val b = rowB(otherInput)
    a.pointTo(base, record + RecordHeader, size)
    b.pointTo(otherBase, otherOffset + RecordHeader, Platform.getInt(otherBase, otherOffset + 8))
    keys.equal(input, a, otherInput, b)
  }

  private def openGroup(head: Long): Unit = {
    var i = 0
    while (i < n) {
      rows(i) = null
      firstRecords(i) = 0
      i += 1
    }
    repeated = false
    var record = head
    while (record != 0) {
      val input = inputOf(record)
      if (firstRecords(input) == 0) {
        firstRecords(input) = record
        rows(input) = cursors(input)
        show(input, record)
      } else {
        repeated = true
      }
      record = nextInGroup(record)
    }
  }

  private def show(input: Int, record: Long): Unit = {
    currentRecords(input) = record
    val base = baseOf(record)
    val offset = offsetOf(record)
    cursors(input).pointTo(base, offset + RecordHeader, Platform.getInt(base, offset + 8))
  }

  private def nextInGroup(record: Long): Long = Platform.getLong(baseOf(record), offsetOf(record))

  private def inputOf(record: Long): Int = Platform.getInt(baseOf(record), offsetOf(record) + 12)
}

private[multijoin] object HashedGroups {
  private val BucketBits = 6
  val NumBuckets: Int = 1 << BucketBits
  private val BucketShift = 64 - BucketBits

  private val ChunkHeader = 24
  private val RecordHeader = 16
  private val FirstChunk = 512
  private val MaxChunk = 16384

  // A pointer: 13 bits of page, 27 bits of word in the page (1 GiB). A slot of the table: 24 bits of
  // the hash over a pointer. The first word of a page stays empty, so that no pointer is 0.
  private val PageHeader = 8
  private val OffsetBits = 27
  private val OffsetMask = (1L << OffsetBits) - 1
  private val PointerMask = (1L << 40) - 1
  private val TagMask = ~PointerMask
  private val MaxPages = 1 << 12
  private val MaxSlots = 1L << 27

  /** A power of two with at most two thirds of the slots taken. */
  private def slotsFor(rows: Long): Long =
    math.max(16L, java.lang.Long.highestOneBit(math.max(1L, rows * 3 / 2 - 1)) << 1)

  /** UnsafeRows are padded to whole words. */
  private def copy(from: AnyRef, fromOffset: Long, to: AnyRef, toOffset: Long, size: Int): Unit =
    if (size > 128) {
      Platform.copyMemory(from, fromOffset, to, toOffset, size)
    } else {
      var i = 0
      while (i < size) {
        Platform.putLong(to, toOffset + i, Platform.getLong(from, fromOffset + i))
        i += 8
      }
    }

  def apply(keys: JoinKeys, numFields: Array[Int], context: TaskContext): HashedGroups = {
    val memory = TaskInternals.memory(context)
    new HashedGroups(keys, numFields, memory, math.min(PageSize, memory.pageSizeBytes))
  }

  private val PageSize = 1L << 22
}
