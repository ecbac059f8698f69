package org.apache.spark.sql.skewext.lab

import java.io.{DataInputStream, InputStream, OutputStream}

import scala.reflect.ClassTag

import org.apache.spark.serializer.{DeserializationStream, SerializationStream, Serializer, SerializerInstance}
import org.apache.spark.sql.skewext.{RecordsIn, StreamsOnly, ValuesOut}
import org.apache.spark.sql.types.{DataType, LongType}
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.hash.Murmur3_x86_32

/** What all ways must agree on: rows, the sum of all longs, and that of all strings' hashes. */
private case class Sums(rows: Long = 0, longs: Long = 0, strings: Long = 0) {
  def +(other: Sums): Sums =
    Sums(rows + other.rows, longs + other.longs, strings + other.strings)
}

/** Decodes blocks and sums up what is in them. */
private final class BlockReader(types: Seq[DataType]) {
  private[this] val isLong = types.map(_ == LongType).toArray
  private[this] val opened = new Pieces.Opened
  private[this] val strings = new Strings.Decoded
  private[this] var words = new Array[Long](0)
  private[this] var buffer = new Array[Byte](1 << 16)

  /** All blocks of a stream. */
  def sum(in: InputStream): Sums = {
    val data = new DataInputStream(in)
    var sums = Sums()
    var size = nextSize(data)
    while (size >= 0) {
      // The last piece is touched up to a word behind its end.
      if (buffer.length < size + 8) buffer = new Array[Byte](2 * size + 8)
      data.readFully(buffer, 0, size)
      sums += sumOf(buffer)
      size = nextSize(data)
    }
    sums
  }

  private def nextSize(data: DataInputStream): Int = {
    val first = data.read()
    if (first < 0) -1
    else first | data.read() << 8 | data.read() << 16 | data.read() << 24
  }

  private def sumOf(block: Array[Byte]): Sums = {
    val rows = Platform.getInt(block, Platform.BYTE_ARRAY_OFFSET.toLong)
    if (words.length < rows) words = new Array[Long](rows)
    var longs = 0L
    var hashes = 0L
    var at = 4
    var column = 0
    while (column < isLong.length) {
      val next = opened.open(block, at)
      val bytes = opened.bytes
      val end = if (isLong(column)) {
        val end = Words.decode(bytes, opened.at, rows, words)
        longs += sumOfWords(rows)
        end
      } else {
        val end = strings.decode(bytes, opened.at, rows)
        hashes += sumOfHashes(bytes, rows)
        end
      }
      at = if (next < 0) end else next
      column += 1
    }
    Sums(rows, longs, hashes)
  }

  private def sumOfWords(rows: Int): Long = {
    val words = this.words
    var sum = 0L
    var i = 0
    while (i < rows) {
      sum += words(i)
      i += 1
    }
    sum
  }

  private def sumOfHashes(bytes: Array[Byte], rows: Int): Long = {
    val starts = strings.starts
    val lengths = strings.lengths
    var sum = 0L
    var i = 0
    while (i < rows) {
      sum += Murmur3_x86_32
        .hashUnsafeBytes(bytes, (Platform.BYTE_ARRAY_OFFSET + starts(i)).toLong, lengths(i), 42)
      i += 1
    }
    sum
  }
}

/** Writes whole blocks, so that Spark's own shuffle writers take them as they take rows. */
private final class BlockSerializer extends Serializer with Serializable {
  override def supportsRelocationOfSerializedObjects: Boolean = true
  override def newInstance(): SerializerInstance = new BlockSerializerInstance
}

private final class BlockSerializerInstance extends StreamsOnly {
  override def serializeStream(out: OutputStream): SerializationStream = new ValuesOut {
    override def writeValue[T: ClassTag](value: T): SerializationStream = {
      val block = value.asInstanceOf[Bytes]
      out.write(block.array, 0, block.size)
      this
    }
    override def flush(): Unit = out.flush()
    override def close(): Unit = out.close()
  }

  /** One value for each stream: the stream. */
  override def deserializeStream(in: InputStream): DeserializationStream =
    new RecordsIn {
      override def asKeyValueIterator: Iterator[(Any, Any)] = Iterator.single((0, in))
      override def close(): Unit = in.close()
    }
}
