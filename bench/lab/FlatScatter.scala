package org.apache.spark.sql.skewext.lab

import java.util.Arrays

import org.apache.spark.sql.execution.vectorized.WritableColumnVector
import org.apache.spark.sql.types.{DataType, LongType}
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.unsafe.Platform

/**
 * Columns are kept as they come and brought into order when they are flushed, one after the other:
 * either each value goes to its place ("scattered"), or each place takes its value ("gathered").
 */
private final class FlatScatter(types: Seq[DataType], numPartitions: Int, way: Way)
    extends Scatter(types, numPartitions, way) {

  private[this] val gathers = way.scatter == "gathered"
  private[this] var partitionOf = new Array[Int](1 << 16)
  private[this] var numRows = 0
  private[this] val starts = new Array[Int](numPartitions + 1)

  /** Where each row goes, or, if places take their rows, which row it is. */
  private[this] var places = new Array[Int](0)
  private[this] var ordered = new Array[Long](0)
  private[this] val columns: Array[FlatColumn] = types.map {
    case LongType => new WordColumn: FlatColumn
    case _ => new StringColumn
  }.toArray
  private[this] val encoded = Array.fill(numColumns)(new Bytes(1 << 16))
  private[this] val ends = Array.fill(numColumns)(new Array[Int](numPartitions + 1))

  override def size: Long = columns.map(_.size).sum + 4L * numRows

  override def clear(): Unit = {
    numRows = 0
    columns.foreach(_.clear())
  }

  override def rows(partition: Int): Int = starts(partition + 1) - starts(partition)

  override protected def append(batch: ColumnarBatch, rows: Int, partitions: Array[Int]): Unit = {
    if (numRows + rows > partitionOf.length) {
      partitionOf = Arrays.copyOf(partitionOf, 2 * partitionOf.length)
    }
    System.arraycopy(partitions, 0, partitionOf, numRows, rows)
    var i = 0
    while (i < numColumns) {
      columns(i).append(batch.column(i).asInstanceOf[WritableColumnVector], rows)
      i += 1
    }
    numRows += rows
  }

  override def finish(): Unit = {
    Arrays.fill(starts, 0)
    var i = 0
    while (i < numRows) {
      starts(partitionOf(i) + 1) += 1
      i += 1
    }
    i = 0
    while (i < numPartitions) {
      starts(i + 1) += starts(i)
      i += 1
    }
    if (places.length < numRows) {
      places = new Array[Int](numRows)
      ordered = new Array[Long](numRows)
    }
    val next = starts.clone()
    i = 0
    while (i < numRows) {
      val p = partitionOf(i)
      if (gathers) places(next(p)) = i else places(i) = next(p)
      next(p) += 1
      i += 1
    }
    i = 0
    while (i < numColumns) {
      encoded(i).size = 0
      columns(i).encode(encoded(i), ends(i), pieces(i))
      i += 1
    }
  }

  override protected def piece(column: Int, partition: Int, out: Bytes): Unit = {
    val from = ends(column)(partition)
    out.put(encoded(column).array, from, ends(column)(partition + 1) - from)
  }

  private def order(values: Array[Long]): Unit = {
    val places = this.places
    val ordered = this.ordered
    val rows = numRows
    var i = 0
    if (gathers) {
      while (i < rows) {
        ordered(i) = values(places(i))
        i += 1
      }
    } else {
      while (i < rows) {
        ordered(places(i)) = values(i)
        i += 1
      }
    }
  }

  private abstract class FlatColumn {
    protected[this] var values = new Array[Long](1 << 16)
    protected[this] var count = 0

    def append(vector: WritableColumnVector, rows: Int): Unit
    def size: Long = 8L * count
    def clear(): Unit = count = 0
    def encode(out: Bytes, ends: Array[Int], pieces: Pieces): Unit

    protected def reserve(rows: Int): Unit =
      if (count + rows > values.length) values = Arrays.copyOf(values, 2 * values.length)

    protected def runs(out: Bytes, ends: Array[Int], pieces: Pieces)(
        run: (Int, Int) => Unit): Unit = {
      ends(0) = 0
      var p = 0
      while (p < numPartitions) {
        val at = out.size
        out.putByte(0)
        run(starts(p), starts(p + 1))
        pieces.finish(out, at)
        ends(p + 1) = out.size
        p += 1
      }
    }
  }

  private final class WordColumn extends FlatColumn {
    override def append(vector: WritableColumnVector, rows: Int): Unit = {
      reserve(rows)
      val values = this.values
      val at = count
      var i = 0
      while (i < rows) {
        values(at + i) = vector.getLong(i)
        i += 1
      }
      count += rows
    }

    override def encode(out: Bytes, ends: Array[Int], pieces: Pieces): Unit = {
      order(values)
      runs(out, ends, pieces)((from, until) =>
        Words.encode(ordered, from, until, way.wholeBytes, out))
    }
  }

  /** The values are codes, or lengths. */
  private final class StringColumn extends FlatColumn {
    private[this] var codes = new Scatter.Codes(way.dictionaries)
    private[this] val chars = new Bytes(1 << 16)
    private[this] val orderedChars = new Bytes(0)
    private[this] val charStarts = new Array[Int](numPartitions + 1)
    private[this] var charPlaces = new Array[Int](0)

    override def size: Long = 8L * count + chars.size

    override def clear(): Unit = {
      super.clear()
      chars.size = 0
      codes = new Scatter.Codes(way.dictionaries)
    }

    override def append(vector: WritableColumnVector, rows: Int): Unit = {
      reserve(rows)
      if (codes.used && !vector.hasDictionary) stopCodes()
      if (codes.used) {
        val base = codes.baseOf(vector, rows)
        val ids = vector.getDictionaryIds
        var i = 0
        while (i < rows) {
          values(count + i) = base + ids.getDictId(i)
          i += 1
        }
      } else {
        var i = 0
        while (i < rows) {
          val string = vector.getUTF8String(i)
          val length = string.numBytes
          chars.ensure(length)
          Bytes.copyShort(
            string.getBaseObject,
            string.getBaseOffset,
            chars.array,
            (Platform.BYTE_ARRAY_OFFSET + chars.size).toLong,
            length)
          chars.size += length
          values(count + i) = length
          i += 1
        }
      }
      count += rows
    }

    private def stopCodes(): Unit = {
      codes.used = false
      val dictionary = codes.dictionary
      var i = 0
      while (i < count) {
        val code = values(i).toInt
        chars.put(dictionary.bytes.array, dictionary.start(code), dictionary.length(code))
        values(i) = dictionary.length(code)
        i += 1
      }
    }

    override def encode(out: Bytes, ends: Array[Int], pieces: Pieces): Unit = {
      order(values)
      if (codes.used) {
        val encoder = new Strings.OfDictionary(codes.dictionary, way.wholeBytes)
        runs(out, ends, pieces)((from, until) => encoder.encode(ordered, from, until - from, out))
      } else {
        orderChars()
        var p = 0
        runs(out, ends, pieces) { (from, until) =>
          val at = charStarts(p)
          val size = charStarts(p + 1) - at
          Strings.encode(
            ordered,
            from,
            until - from,
            orderedChars.array,
            at,
            size,
            way.wholeBytes,
            out)
          p += 1
        }
      }
    }

    private def orderChars(): Unit = {
      if (charPlaces.length < count + 1) charPlaces = new Array[Int](count + 1)
      orderedChars.size = 0
      orderedChars.ensure(chars.size)
      // Where the bytes of the place's string go, or, if places take theirs, of the row's come from.
      val lengths = if (gathers) values else ordered
      var at = 0
      var i = 0
      while (i < count) {
        charPlaces(i) = at
        at += lengths(i).toInt
        i += 1
      }
      charPlaces(count) = at
      var other = 0
      i = 0
      while (i < count) {
        val place = places(i)
        val length = (if (gathers) ordered(i) else values(i)).toInt
        val from = if (gathers) charPlaces(place) else other
        val to = if (gathers) other else charPlaces(place)
        Bytes.copyShort(
          chars.array,
          (Platform.BYTE_ARRAY_OFFSET + from).toLong,
          orderedChars.array,
          (Platform.BYTE_ARRAY_OFFSET + to).toLong,
          length)
        other += length
        i += 1
      }
      var p = 0
      var sum = 0
      while (p < numPartitions) {
        charStarts(p) = sum
        if (gathers) {
          var j = starts(p)
          while (j < starts(p + 1)) {
            sum += ordered(j).toInt
            j += 1
          }
        } else {
          sum = charPlaces(starts(p + 1))
        }
        p += 1
      }
      charStarts(numPartitions) = sum
    }
  }
}
