package org.apache.spark.sql.skewext.lab

import java.util.Arrays

import org.apache.spark.sql.execution.vectorized.WritableColumnVector
import org.apache.spark.sql.types.{DataType, LongType}
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.unsafe.Platform

/** Each partition has an array for each of its columns, to which the rows of each batch go. */
private final class AppendedScatter(types: Seq[DataType], numPartitions: Int, way: Way)
    extends Scatter(types, numPartitions, way) {

  private[this] val counts = new Array[Int](numPartitions)
  private[this] val before = new Array[Int](numPartitions)
  private[this] var places = new Array[Int](0)
  private[this] var numRows = 0L
  private[this] val columns = types.map {
    case LongType => new WordColumn: AppendedColumn
    case _ => new StringColumn
  }.toArray

  override def size: Long = columns.map(_.size).sum

  override def finish(): Unit = ()

  override def rows(partition: Int): Int = counts(partition)

  override def clear(): Unit = {
    Arrays.fill(counts, 0)
    numRows = 0
    columns.foreach(_.clear())
  }

  override protected def append(batch: ColumnarBatch, rows: Int, partitions: Array[Int]): Unit = {
    if (places.length < rows) places = new Array[Int](rows)
    System.arraycopy(counts, 0, before, 0, numPartitions)
    var i = 0
    while (i < rows) {
      val p = partitions(i)
      places(i) = counts(p)
      counts(p) += 1
      i += 1
    }
    numRows += rows
    i = 0
    while (i < numColumns) {
      columns(i).append(batch.column(i).asInstanceOf[WritableColumnVector], rows, partitions)
      i += 1
    }
  }

  override protected def piece(column: Int, partition: Int, out: Bytes): Unit = {
    val at = out.size
    out.putByte(0)
    columns(column).encode(partition, out)
    pieces(column).finish(out, at)
  }

  private abstract class AppendedColumn {
    protected val values: Array[Array[Long]] = Array.fill(numPartitions)(new Array[Long](64))

    def append(vector: WritableColumnVector, rows: Int, partitions: Array[Int]): Unit
    def encode(partition: Int, out: Bytes): Unit
    def size: Long = 8 * numRows
    def clear(): Unit = ()

    protected def reserve(): Unit = {
      var p = 0
      while (p < numPartitions) {
        if (counts(p) > values(p).length) {
          values(p) = Arrays.copyOf(values(p), math.max(counts(p), 2 * values(p).length))
        }
        p += 1
      }
    }
  }

  private final class WordColumn extends AppendedColumn {
    override def append(vector: WritableColumnVector, rows: Int, partitions: Array[Int]): Unit = {
      reserve()
      val values = this.values
      val places = AppendedScatter.this.places
      var i = 0
      while (i < rows) {
        values(partitions(i))(places(i)) = vector.getLong(i)
        i += 1
      }
    }

    override def encode(partition: Int, out: Bytes): Unit =
      Words.encode(values(partition), 0, counts(partition), way.wholeBytes, out)
  }

  private final class StringColumn extends AppendedColumn {
    private[this] var codes = new Scatter.Codes(way.dictionaries)
    private[this] var encoder: Strings.OfDictionary = _
    private[this] val chars = Array.fill(numPartitions)(new Bytes(256))

    override def size: Long = 8 * numRows + chars.map(_.size.toLong).sum

    override def clear(): Unit = {
      codes = new Scatter.Codes(way.dictionaries)
      encoder = null
      chars.foreach(_.size = 0)
    }

    override def append(vector: WritableColumnVector, rows: Int, partitions: Array[Int]): Unit = {
      reserve()
      if (codes.used && !vector.hasDictionary) stopCodes()
      if (codes.used) {
        val base = codes.baseOf(vector, rows)
        val ids = vector.getDictionaryIds
        var i = 0
        while (i < rows) {
          values(partitions(i))(places(i)) = base + ids.getDictId(i)
          i += 1
        }
      } else {
        var i = 0
        while (i < rows) {
          val string = vector.getUTF8String(i)
          val length = string.numBytes
          val out = chars(partitions(i))
          out.ensure(length)
          Bytes.copyShort(
            string.getBaseObject,
            string.getBaseOffset,
            out.array,
            (Platform.BYTE_ARRAY_OFFSET + out.size).toLong,
            length)
          out.size += length
          values(partitions(i))(places(i)) = length
          i += 1
        }
      }
    }

    private def stopCodes(): Unit = {
      codes.used = false
      val dictionary = codes.dictionary
      var p = 0
      while (p < numPartitions) {
        val own = values(p)
        var i = 0
        // The rows of the batch that comes without one are counted already.
        while (i < before(p)) {
          val code = own(i).toInt
          chars(p).put(dictionary.bytes.array, dictionary.start(code), dictionary.length(code))
          own(i) = dictionary.length(code)
          i += 1
        }
        p += 1
      }
    }

    override def encode(partition: Int, out: Bytes): Unit =
      if (codes.used) {
        if (encoder == null) encoder = new Strings.OfDictionary(codes.dictionary, way.wholeBytes)
        encoder.encode(values(partition), 0, counts(partition), out)
      } else {
        val bytes = chars(partition)
        Strings.encode(
          values(partition),
          0,
          counts(partition),
          bytes.array,
          0,
          bytes.size,
          way.wholeBytes,
          out)
      }
  }
}
