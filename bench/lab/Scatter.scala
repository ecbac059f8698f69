package org.apache.spark.sql.skewext.lab

import org.apache.spark.sql.execution.vectorized.{Dictionary, VectorDictionaries, WritableColumnVector}
import org.apache.spark.sql.types.{DataType, LongType}
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.hash.Murmur3_x86_32

/** How blocks are made; what the laboratory compares. */
private case class Way(
    name: String,
    scatter: String,
    wholeBytes: Boolean = false,
    compresses: Boolean = false,
    throughSpark: Boolean = false,
    serialized: Boolean = false,
    dictionaries: Boolean = true)

/**
 * The rows of a flush, brought into the order of partitions. A block has its size, its rows, and a
 * piece for each column. No nulls: the laboratory's tables have none.
 */
private abstract class Scatter(types: Seq[DataType], protected val numPartitions: Int, way: Way) {
  protected val numColumns: Int = types.size
  protected val pieces: Array[Pieces] = Array.fill(numColumns)(new Pieces(way.compresses))
  private[this] var partitions = new Array[Int](0)

  /** Bytes that the flush has in memory. */
  def size: Long
  protected def append(batch: ColumnarBatch, rows: Int, partitions: Array[Int]): Unit
  def finish(): Unit
  def rows(partition: Int): Int
  protected def piece(column: Int, partition: Int, out: Bytes): Unit

  /** Empty, for the next flush. */
  def clear(): Unit

  /** The key is the first column. */
  def add(batch: ColumnarBatch): Unit = {
    val rows = batch.numRows
    if (partitions.length < rows) partitions = new Array[Int](rows)
    require(!(0 until numColumns).exists(batch.column(_).hasNull))
    val key = batch.column(0).asInstanceOf[WritableColumnVector]
    if (types.head == LongType) hashLongs(key, rows) else hashStrings(key, rows)
    append(batch, rows, partitions)
  }

  private def hashLongs(key: WritableColumnVector, rows: Int): Unit = {
    val partitions = this.partitions
    var i = 0
    while (i < rows) {
      partitions(i) = partitionOf(Murmur3_x86_32.hashLong(key.getLong(i), 42))
      i += 1
    }
  }

  private def hashStrings(key: WritableColumnVector, rows: Int): Unit = {
    val partitions = this.partitions
    var i = 0
    while (i < rows) {
      val string = key.getUTF8String(i)
      partitions(i) = partitionOf(
        Murmur3_x86_32
          .hashUnsafeBytes(string.getBaseObject, string.getBaseOffset, string.numBytes, 42))
      i += 1
    }
  }

  private def partitionOf(hash: Int): Int = {
    val remainder = hash % numPartitions
    if (remainder < 0) remainder + numPartitions else remainder
  }

  /** Appends a partition's block. */
  def block(partition: Int, out: Bytes): Unit = {
    val at = out.size
    out.putInt(0)
    out.putInt(rows(partition))
    var column = 0
    while (column < numColumns) {
      piece(column, partition, out)
      column += 1
    }
    Platform.putInt(out.array, (Platform.BYTE_ARRAY_OFFSET + at).toLong, out.size - at - 4)
  }
}

private[lab] object Scatter {
  def apply(types: Seq[DataType], numPartitions: Int, way: Way): Scatter = way.scatter match {
    case "appended" => new AppendedScatter(types, numPartitions, way)
    case _ => new FlatScatter(types, numPartitions, way)
  }

  /** Codes of one column's strings; -1 from the first batch on that comes without a dictionary. */
  final class Codes(allowed: Boolean) {
    var dictionary = new StringDictionary
    private[this] var last: Dictionary = _
    private[this] var base = 0

    var used: Boolean = allowed

    /** The number to be added to the batch's codes. */
    def baseOf(vector: WritableColumnVector, rows: Int): Int = {
      val current = VectorDictionaries.of(vector)
      if (current ne last) {
        last = current
        base = dictionary.size
      }
      // Nothing tells how many entries there are.
      val ids = vector.getDictionaryIds
      var most = -1
      var i = 0
      while (i < rows) {
        most = math.max(most, ids.getDictId(i))
        i += 1
      }
      while (dictionary.size <= base + most) {
        dictionary.add(current.decodeToBinary(dictionary.size - base))
      }
      base
    }
  }
}
