package io.github.skewext.shuffle

import java.util.Arrays

import org.apache.spark.sql.types.DataType
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.unsafe.Platform

/**
 * Collects the rows of a map task column by column and returns them as blocks in the order of the
 * partitions. Batches are appended in the order of arrival. `drain` puts one column after the other
 * into the order of the partitions (counting sort) and encodes it, so that only one column exists
 * twice. A block holds at most `BlockRows` rows of one partition, so that its reader needs little
 * memory. Rows of a partition keep their order.
 *
 * A block consists of its size without these four bytes, its number of rows in four bytes, and its
 * columns. A column consists of
 *
 *  - one byte, which is 1 if the column has nulls
 *  - if so, a word for each row, which is 1 for a null
 *  - the words of the values, encoded by [[BitPacking]]; for strings their lengths
 *  - for strings, all their bytes, encoded by [[SmallAlphabetEncoding]]
 *
 * @param routes computes the partition of each row
 * @param compressed the number of bytes to which the shuffle's codec compresses the first bytes of
 *                   an array
 */
final class PartitionedColumnBuffer(
    types: Seq[DataType],
    numPartitions: Int,
    routes: BatchPartitioner,
    compressed: (Array[Byte], Int) => Int = (_, length) => length) {

  private[this] val columns = types.map(new Column(_)).toArray
  private[this] val appended = columns.map(_.values)
  private[this] val different = new DifferentWords
  private[this] val fixedSize = 8L * ((types.size + 63) / 64 + types.size)
  private[this] var partitions = new Array[Int](PartitionedColumnBuffer.Initial)
  private[this] var numRows = 0

  private[this] var places = new Array[Int](0)
  private[this] var ordered = new Array[Long](0)
  private[this] var stringStarts = new Array[Int](0)
  private[this] var bytesInPlaces = new Array[Byte](0)
  private[this] val starts = new Array[Int](numPartitions + 1)
  // Whether each row is at its position already.
  private[this] var isInOrder = false

  // The partition of each block, and its range of ordered rows.
  private[this] var blocks = IndexedSeq.empty[(Int, Int, Int)]

  /** Bytes of the rows as `UnsafeRow`s. */
  var rowBytes = 0L

  def isEmpty: Boolean = numRows == 0

  /** The number of blocks of the last `drain`. */
  def numBlocks: Int = blocks.size

  /** Whether each partition has an almost full block, if all have about as many rows. */
  def fillsBlocks: Boolean =
    numRows >= PartitionedColumnBuffer.BlockRows * 15L / 16 * numPartitions

  /**
   * Whether a block of few rows is large already. Their bytes exist up to four times while they are
   * encoded, beside the batch of the reader.
   */
  def hasLongRows: Boolean = size >= numRows * PartitionedColumnBuffer.LongRow

  /** Bytes of the collected rows, including the memory for ordering them. */
  def size: Long = {
    var sum = numRows * PartitionedColumnBuffer.RowOverhead
    var i = 0
    while (i < columns.length) {
      sum += columns(i).size
      i += 1
    }
    sum
  }

  /**
   * Adds rows of a batch, at least one. It stops before the strings of a column have more than
   * `mostBytes` bytes, as the next values of a batch may be of any length.
   *
   * @return the number of rows that were added
   */
  def add(batch: ColumnarBatch, from: Int, until: Int, mostBytes: Int = Int.MaxValue): Int = {
    var rows = until - from
    var i = 0
    while (i < columns.length) {
      rows = appended(i).append(batch.column(i), from, rows, mostBytes)
      i += 1
    }
    i = 0
    while (i < columns.length) {
      val excess = appended(i).count - numRows - rows
      if (excess > 0) appended(i).removeLast(excess)
      rowBytes += appended(i).lastRowBytes
      i += 1
    }
    if (numRows + rows > partitions.length) {
      partitions = Arrays.copyOf(partitions, math.max(numRows + rows, 2 * partitions.length))
    }
    rowBytes += rows * fixedSize
    routes.find(batch, from, rows, appended, partitions, numRows)
    numRows += rows
    rows
  }

  /**
   * Returns the blocks in the order of their partitions, each with its partition and its number of
   * rows. A block is valid until the next one is requested. This object is empty afterwards.
   */
  def drain(): Iterator[(Int, Int, ByteBuilder)] = {
    order()
    val block = new ByteBuilder(1 << 16)
    // A block of its own, such as of one long value, needs no copy.
    val isOnly = blocks.size == 1
    if (isOnly) begin(block, numRows)
    columns.foreach(column => column.encode(if (isOnly) block else column.encoded))
    numRows = 0
    blocks.indices.iterator.map { b =>
      val (partition, from, until) = blocks(b)
      if (!isOnly) {
        begin(block, until - from)
        columns.foreach(_.copyTo(block, b))
      }
      Platform.putInt(block.array, Platform.BYTE_ARRAY_OFFSET.toLong, block.size - 4)
      (partition, until - from, block)
    }
  }

  private def begin(block: ByteBuilder, rows: Int): Unit = {
    block.size = 0
    block.putInt(0)
    block.putInt(rows)
  }

  /** Computes the position of each row and the ranges of the blocks. */
  private def order(): Unit = {
    Arrays.fill(starts, 0)
    var i = 0
    while (i < numRows) {
      starts(partitions(i) + 1) += 1
      i += 1
    }
    i = 0
    while (i < numPartitions) {
      starts(i + 1) += starts(i)
      i += 1
    }
    blocks = (0 until numPartitions).flatMap { p =>
      (starts(p) until starts(p + 1) by PartitionedColumnBuffer.BlockRows).map(from =>
        (p, from, math.min(starts(p + 1), from + PartitionedColumnBuffer.BlockRows)))
    }
    if (places.length < numRows) {
      places = new Array[Int](numRows)
      ordered = new Array[Long](numRows)
      if (appended.exists(_.isBytes)) stringStarts = new Array[Int](numRows)
    }
    val next = starts.clone()
    isInOrder = true
    i = 0
    while (i < numRows) {
      val p = partitions(i)
      places(i) = next(p)
      if (places(i) != i) isInOrder = false
      next(p) += 1
      i += 1
    }
  }

  private final class Column(dataType: DataType) {
    val values = new AppendedColumn(dataType)

    val encoded = new ByteBuilder(0)
    private[this] val strings = if (values.isBytes) new SmallAlphabetEncoding else null
    private[this] var ends = new Array[Int](0)

    def size: Long = {
      val ofRow = (if (values.hasNulls) 16L else 8L) + (if (values.sharesBytes) 4L else 0L)
      ofRow * values.count + values.bytes.size + values.numBytes
    }

    /** Encodes the appended values in the order of their positions, then removes them. */
    def encode(to: ByteBuilder): Unit = {
      encoded.clear()
      if (ends.length < blocks.size) ends = new Array[Int](blocks.size)
      val hasNulls = values.hasNulls
      val orderedNulls =
        if (hasNulls) inOrder(values.nulls, new Array[Long](values.count)) else values.nulls
      inOrder(values.words, ordered)
      val orderedBytes = if (values.isBytes) bytesInOrder() else values.bytes.array
      if (values.isBytes) strings.begin(orderedBytes, values.numBytes, compressed)
      var bytesAt = Platform.BYTE_ARRAY_OFFSET.toLong
      var b = 0
      while (b < blocks.size) {
        val (_, from, until) = blocks(b)
        to.putByte(if (hasNulls) 1 else 0)
        if (hasNulls) BitPacking.encode(orderedNulls, from, until, to)
        BitPacking.encode(ordered, from, until, to, different)
        if (values.isBytes) {
          val length = sum(ordered, from, until)
          strings.encode(orderedBytes, bytesAt, length, to)
          bytesAt += length
        }
        ends(b) = to.size
        b += 1
      }
      values.clear()
      if (bytesInPlaces.length > ByteBuilder.MostKept) bytesInPlaces = Array.emptyByteArray
    }

    private def inOrder(from: Array[Long], to: Array[Long]): Array[Long] = {
      val places = PartitionedColumnBuffer.this.places
      val rows = values.count
      var i = 0
      while (i < rows) {
        to(places(i)) = from(i)
        i += 1
      }
      to
    }

    private def bytesInOrder(): Array[Byte] = {
      val count = values.count
      val lengths = values.words
      val from = values.bytes.array
      val fromStarts = if (values.sharesBytes) values.starts else null
      // The first string begins the bytes, even if later ones share them.
      if (isInOrder && ((fromStarts eq null) || count == 1)) return from
      val starts = stringStarts
      if (bytesInPlaces.length < values.numBytes) {
        bytesInPlaces = new Array[Byte](values.numBytes)
      }
      val to = bytesInPlaces
      var at = 0
      var i = 0
      while (i < count) {
        starts(i) = at
        at += ordered(i).toInt
        i += 1
      }
      at = 0
      i = 0
      while (i < count) {
        val length = lengths(i).toInt
        if (fromStarts ne null) at = fromStarts(i)
        RowBytes.copyShort(
          from,
          (Platform.BYTE_ARRAY_OFFSET + at).toLong,
          to,
          (Platform.BYTE_ARRAY_OFFSET + starts(places(i))).toLong,
          length)
        at += length
        i += 1
      }
      to
    }

    private def sum(lengths: Array[Long], from: Int, until: Int): Int = {
      var sum = 0L
      var i = from
      while (i < until) {
        sum += lengths(i)
        i += 1
      }
      sum.toInt
    }

    def copyTo(block: ByteBuilder, b: Int): Unit = {
      val from = if (b == 0) 0 else ends(b - 1)
      block.put(encoded.array, (Platform.BYTE_ARRAY_OFFSET + from).toLong, ends(b) - from)
    }
  }
}

object PartitionedColumnBuffer {

  /** Maximum number of rows in a block. A reader holds all of them in arrays. */
  val BlockRows: Int = 4096

  // Bytes of a row that is one record to Spark's writer as well as many rows are.
  private val LongRow = 8L << 10

  // Initial capacity for the partitions of rows.
  private val Initial = 4096

  /**
   * Bytes per row besides its columns: partition, position, and the ordered word and null of one
   * column.
   */
  private val RowOverhead = 24L
}
