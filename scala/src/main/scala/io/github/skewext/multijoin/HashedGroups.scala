package io.github.skewext.multijoin

import io.github.skewext.RowBytes

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
 * record: hash of the key | size, input | UnsafeRow
 * }}}
 * A pointer is the number of the page and the offset in it, in words of 8 bytes.
 */
private[multijoin] final class HashedGroups(
    keys: JoinKeys,
    numFields: Array[Int],
    single: Array[Boolean],
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

  // The current bucket: a hash table of row numbers, and for each row its record and the number of
  // another row of the same hash. Rows are numbered from 1.
  private[this] var table: LongArray = _
  private[this] var records: LongArray = _
  private[this] var nexts: LongArray = _
  private[this] var bucket = -1
  private[this] var numSlots = 0
  private[this] var slot = 0

  // Rows that head the next groups, whose records are on their way to the processor.
  private[this] val heads = new Array[Int](LookAhead)
  private[this] var numHeads = 0
  private[this] var head = 0
  private[this] var touched = 0L

  /** Rows of the current group's hash, but not of its key: the next group. */
  private[this] var collided = 0

  // The current group: for every input its first and its current row.
  override val rows = new Array[UnsafeRow](n)
  private[this] val cursors = numFields.map(new UnsafeRow(_))
  private[this] val firstRows = new Array[Int](n)
  private[this] val currentRows = new Array[Int](n)
  private[this] var repeated = false
  private[this] var changed = 0

  private[this] val keyRow = numFields.map(new UnsafeRow(_))
  private[this] val otherRow = numFields.map(new UnsafeRow(_))

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
    RowBytes.copy(row.getBaseObject, row.getBaseOffset, base, position + RecordHeader, size)
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
      records = allocateArray(largest + 1)
      nexts = allocateArray(largest / 2 + 1)
    } catch {
      case _: SparkOutOfMemoryError =>
        freeTables()
        return false
    }
    peak = math.max(peak, used)
    true
  }

  private def freeTables(): Unit = {
    Seq(table, records, nexts).filter(_ != null).foreach(freeArray)
    table = null
    records = null
    nexts = null
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
    // Asked again, it must say the same.
    if (b == NumBuckets) return false
    bucket = b
    buildTable()
    true
  }

  /**
   * Takes the heads of the next groups from the table and reads a word or two of each of their rows.
   * Records are read in no order, so each has to be waited for; but many can be under way at once,
   * if nothing depends on what is read.
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
    var h = 0
    while (h < found) {
      var row = heads(h)
      var left = LookAhead
      while (row != 0 && left > 0) {
        val record = records.get(row)
        val base = baseOf(record)
        val offset = offsetOf(record)
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

  override def firstChanged: Int = changed

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
    freeTables()
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
    freeTables()
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
    if (pagePosition + size > pageEnd && !newPage(PageHeader + size + PageTail)) return false
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
    pageEnd = page.getBaseOffset + page.size() - PageTail
    true
  }

  private def closePage(): Unit = if (numPages > 0) {
    pagesUsed(numPages - 1) = pagePosition - pages(numPages - 1).getBaseOffset
  }

  private def baseOf(pointer: Long): AnyRef = pageOf(pointer).getBaseObject

  private def offsetOf(pointer: Long): Long =
    pageOf(pointer).getBaseOffset + ((pointer & OffsetMask) << 3)

  private def pageOf(pointer: Long): MemoryBlock = pages((pointer >>> OffsetBits).toInt & PageMask)

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

  /**
   * Chains the rows of one hash, without a look at their keys: that would be a record read in no
   * order for every row. The keys are compared when the group is opened and its records are read
   * anyway.
   */
  private def buildTable(): Unit = {
    numSlots = slotsFor(rowsOf(bucket)).toInt
    slot = 0
    val tableBase = table.memoryBlock().getBaseObject
    val tableOffset = table.memoryBlock().getBaseOffset
    Platform.setMemory(tableBase, tableOffset, numSlots * 8L, 0)
    val mask = numSlots - 1
    var row = 0
    var i = 0
    while (i < n) {
      val input = i.toLong << PointerBits
      var chunkPointer = firstChunks(i * NumBuckets + bucket)
      while (chunkPointer != 0) {
        val base = baseOf(chunkPointer)
        val chunk = offsetOf(chunkPointer)
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
          // The latest row heads the chain, so the rows of one input stand together.
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
    pointTo(headRow, head)
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
      pointTo(other, record)
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
    pointTo(cursors(input), records.get(row))
  }

  private def pointTo(row: UnsafeRow, record: Long): Unit = {
    val base = baseOf(record)
    val offset = offsetOf(record)
    row.pointTo(base, offset + RecordHeader, Platform.getInt(base, offset + 8))
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

private[multijoin] object HashedGroups {
  private val BucketBits = 6
  val NumBuckets: Int = 1 << BucketBits
  private val BucketShift = 64 - BucketBits

  private val ChunkHeader = 24
  private val RecordHeader = 16
  private val FirstChunk = 512
  private val MaxChunk = 16384

  // A pointer: 13 bits of page, 27 bits of word in the page (1 GiB). The first word of a page stays
  // empty, so that no pointer is 0. The table of records has the input above the pointer.
  private val PageHeader = 8
  private val CacheLine = 64
  // Looking ahead may read the line after a record.
  private val PageTail = CacheLine + 8
  private val OffsetBits = 27
  private val OffsetMask = (1L << OffsetBits) - 1
  private val PointerBits = 40
  private val MaxPages = 1 << (PointerBits - OffsetBits)
  private val PageMask = MaxPages - 1

  // A slot of the table: 32 bits of the hash, between those that choose the bucket and those that
  // choose the slot, over the number of a row.
  private val TagShift = 64 - BucketBits - 32
  private val TagMask = ~0L << 32
  private val MaxSlots = 1L << 27

  // As many reads as a processor can have under way.
  private val LookAhead = 16

  /** A power of two with at most two thirds of the slots taken. */
  private def slotsFor(rows: Long): Long =
    math.max(16L, java.lang.Long.highestOneBit(math.max(1L, rows * 3 / 2 - 1)) << 1)

  def apply(
      keys: JoinKeys,
      numFields: Array[Int],
      single: Array[Boolean],
      context: TaskContext): HashedGroups = {
    val memory = TaskInternals.memory(context)
    new HashedGroups(keys, numFields, single, memory, math.min(PageSize, memory.pageSizeBytes))
  }

  private val PageSize = 1L << 22
}
