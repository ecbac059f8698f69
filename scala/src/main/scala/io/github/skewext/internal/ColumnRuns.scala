package io.github.skewext.internal

import java.util.Arrays

import org.apache.spark.sql.types.DataType
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.unsafe.Platform

/**
 * Rows on their way to partitions, by column: batches are appended as they come; then each column is
 * brought into the order of the partitions, and encoded, one after the other, so that there is a second
 * copy of one column only. A block has rows of one partition, and not too many, so that who reads it
 * needs little memory; those of a partition are in the order in which they came.
 *
 * A block: its size without these four bytes, its number of rows in four, and for each column a byte
 * that says whether there are nulls, if so a word for each row (1 is null), and the words; for strings
 * their lengths, and all their bytes as [[FewBytes]] has them.
 *
 * @param routes which partition a row goes to
 * @param compressed how many bytes the shuffle's codec leaves of the first ones of an array
 */
final class ColumnRuns(
    types: Seq[DataType],
    numPartitions: Int,
    routes: ColumnRoutes,
    compressed: (Array[Byte], Int) => Int = (_, length) => length) {

  private[this] val columns = types.map(new Column(_)).toArray
  private[this] val appended = columns.map(_.values)
  private[this] val fixedSize = 8L * ((types.size + 63) / 64 + types.size)
  private[this] var partitions = new Array[Int](ColumnRuns.Initial)
  private[this] var numRows = 0

  private[this] var places = new Array[Int](0)
  private[this] var ordered = new Array[Long](0)
  private[this] var stringStarts = new Array[Int](0)
  private[this] var bytesInPlaces = new Array[Byte](0)
  private[this] val starts = new Array[Int](numPartitions + 1)

  // The partition of each block, and which of the ordered rows it has.
  private[this] var blocks = IndexedSeq.empty[(Int, Int, Int)]

  /** Bytes that the rows would have as Spark's. */
  var rowBytes = 0L

  def isEmpty: Boolean = numRows == 0

  /** Bytes of the rows that are here, with those that ordering them will take. */
  def size: Long = {
    var sum = numRows * ColumnRuns.RowOverhead
    var i = 0
    while (i < columns.length) {
      sum += columns(i).size
      i += 1
    }
    sum
  }

  def add(batch: ColumnarBatch, from: Int, until: Int): Unit = {
    val rows = until - from
    if (numRows + rows > partitions.length) {
      partitions = Arrays.copyOf(partitions, math.max(numRows + rows, 2 * partitions.length))
    }
    rowBytes += rows * fixedSize
    var i = 0
    while (i < columns.length) {
      columns(i).values.append(batch.column(i), from, rows)
      rowBytes += columns(i).values.lastRowBytes
      i += 1
    }
    routes.find(batch, from, rows, appended, partitions, numRows)
    numRows += rows
  }

  /**
   * The blocks, in the order of their partitions, each with its partition and its number of rows. A block
   * is valid until the next one is asked for; after the last one, this is empty.
   */
  def drain(): Iterator[(Int, Int, ByteBuilder)] = {
    order()
    columns.foreach(_.encode())
    numRows = 0
    val block = new ByteBuilder(1 << 16)
    blocks.indices.iterator.map { b =>
      val (partition, from, until) = blocks(b)
      block.size = 0
      block.putInt(0)
      block.putInt(until - from)
      columns.foreach(_.copyTo(block, b))
      Platform.putInt(block.array, Platform.BYTE_ARRAY_OFFSET.toLong, block.size - 4)
      (partition, until - from, block)
    }
  }

  /** Finds the place of each row, and where blocks are. */
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
      (starts(p) until starts(p + 1) by ColumnRuns.BlockRows).map(from =>
        (p, from, math.min(starts(p + 1), from + ColumnRuns.BlockRows)))
    }
    if (places.length < numRows) {
      places = new Array[Int](numRows)
      ordered = new Array[Long](numRows)
      if (appended.exists(_.isBytes)) stringStarts = new Array[Int](numRows)
    }
    val next = starts.clone()
    i = 0
    while (i < numRows) {
      val p = partitions(i)
      places(i) = next(p)
      next(p) += 1
      i += 1
    }
  }

  private final class Column(dataType: DataType) {
    val values = new AppendedColumn(dataType)

    private[this] val encoded = new ByteBuilder(0)
    private[this] val strings = if (values.isBytes) new FewBytes else null
    private[this] var ends = new Array[Int](0)

    def size: Long = (if (values.hasNulls) 16L else 8L) * values.count + 2L * values.bytes.size

    /** What was appended, in the order of places; then there is nothing appended any more. */
    def encode(): Unit = {
      encoded.size = 0
      if (ends.length < blocks.size) ends = new Array[Int](blocks.size)
      val hasNulls = values.hasNulls
      val orderedNulls =
        if (hasNulls) inOrder(values.nulls, new Array[Long](values.count)) else values.nulls
      inOrder(values.words, ordered)
      val orderedBytes = if (values.isBytes) bytesInOrder() else values.bytes.array
      if (values.isBytes) strings.begin(orderedBytes, values.bytes.size, compressed)
      var bytesAt = Platform.BYTE_ARRAY_OFFSET.toLong
      var b = 0
      while (b < blocks.size) {
        val (_, from, until) = blocks(b)
        encoded.putByte(if (hasNulls) 1 else 0)
        if (hasNulls) PackedWords.encode(orderedNulls, from, until, encoded)
        PackedWords.encode(ordered, from, until, encoded)
        if (values.isBytes) {
          val length = sum(ordered, from, until)
          strings.encode(orderedBytes, bytesAt, length, encoded)
          bytesAt += length
        }
        ends(b) = encoded.size
        b += 1
      }
      values.clear()
    }

    private def inOrder(from: Array[Long], to: Array[Long]): Array[Long] = {
      val places = ColumnRuns.this.places
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
      val starts = stringStarts
      if (bytesInPlaces.length < values.bytes.size) {
        bytesInPlaces = new Array[Byte](values.bytes.size)
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

object ColumnRuns {

  /** Of a block. A reader has all of them in arrays. */
  val BlockRows: Int = 4096

  // Of partitions, before they are more.
  private val Initial = 4096

  /** Its partition and place, and the ordered words of one column with their nulls. */
  private val RowOverhead = 24L
}
