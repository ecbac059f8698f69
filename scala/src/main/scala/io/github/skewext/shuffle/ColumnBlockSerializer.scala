package io.github.skewext.shuffle

import java.io.{EOFException, IOException, InputStream, OutputStream}
import java.nio.{ByteBuffer, ByteOrder}

import scala.reflect.ClassTag

import org.apache.spark.serializer.{DeserializationStream, SerializationStream, Serializer, SerializerInstance}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.types.DataType

/**
 * Writes blocks of columns as the records of Spark's shuffle writers, and reads them. A record is
 * one block, wrapped into a row of one value, because Spark's iterators require rows.
 * [[ColumnShuffledRDD]] unwraps it.
 *
 * Lives here because `supportsRelocationOfSerializedObjects` is `private[spark]`.
 */
final class ColumnBlockSerializer(types: Seq[DataType]) extends Serializer with Serializable {
  override def newInstance(): SerializerInstance = new ColumnBlockSerializerInstance(types)
  override def supportsRelocationOfSerializedObjects: Boolean = true
}

private final class ColumnBlockSerializerInstance(types: Seq[DataType]) extends StreamsOnly {

  // A reader opens one stream after the other, and holds one block of all of them.
  private[this] lazy val reader = new ColumnBlockReader(types)

  override def serializeStream(out: OutputStream): SerializationStream = new ColumnBlockOutput(out)
  override def deserializeStream(in: InputStream): DeserializationStream =
    new ColumnBlockInput(in, reader)
}

private final class ColumnBlockOutput(out: OutputStream) extends ValuesOut {
  override def writeValue[T: ClassTag](value: T): SerializationStream = {
    val block = value.asInstanceOf[ByteBuilder]
    out.write(block.array, 0, block.size)
    this
  }

  override def flush(): Unit = out.flush()
  override def close(): Unit = out.close()
}

private final class ColumnBlockReader(types: Seq[DataType]) {
  val rows = new ColumnBlockRows(types)
  val record: (Int, InternalRow) = (0, new GenericInternalRow(Array[Any](rows)))
  private[this] var block = new Array[Byte](1 << 13)

  /** Reads the next block of a stream, whose first byte is given. */
  def read(first: Int, in: InputStream): Unit = {
    block(0) = first.toByte
    fill(in, 1, 4)
    val size = ByteBuffer.wrap(block).order(ByteOrder.nativeOrder).getInt
    if (size <= 0 || size > RowBytes.MostBytes - BitPacking.Slack) {
      throw new IOException(s"A shuffle block of $size bytes")
    }
    fill(in, 0, size)
    rows.open(block, size)
  }

  /** The buffer grows with the bytes that were read, so that an invalid size takes no memory. */
  private def fill(in: InputStream, from: Int, until: Int): Unit = {
    var at = from
    while (at < until) {
      if (block.length - at <= BitPacking.Slack) {
        block = java.util.Arrays.copyOf(block, RowBytes.grown(block.length + 1L))
      }
      val read = in.read(block, at, math.min(until - at, block.length - at - BitPacking.Slack))
      if (read < 0) throw new EOFException
      at += read
    }
  }
}

private final class ColumnBlockInput(in: InputStream, reader: ColumnBlockReader) extends RecordsIn {

  override def asKeyValueIterator: Iterator[(Int, InternalRow)] = new Iterator[(Int, InternalRow)] {
    private[this] var first = Unknown

    // The block before stays valid: a shuffle manager may look ahead.
    override def hasNext: Boolean = {
      if (first == Unknown) {
        first = in.read()
        if (first < 0) in.close()
      }
      first >= 0
    }

    override def next(): (Int, InternalRow) = {
      if (!hasNext) throw new NoSuchElementException
      reader.read(first, in)
      first = Unknown
      reader.record
    }
  }

  private def Unknown = -2

  override def close(): Unit = in.close()
}

/**
 * A serializer for shuffles. Like Spark's own serializer of rows, it has only the methods that they
 * call.
 */
private[skewext] trait StreamsOnly extends SerializerInstance {
  override def serialize[T: ClassTag](value: T): ByteBuffer =
    throw new UnsupportedOperationException
  override def deserialize[T: ClassTag](bytes: ByteBuffer): T =
    throw new UnsupportedOperationException
  override def deserialize[T: ClassTag](bytes: ByteBuffer, loader: ClassLoader): T =
    throw new UnsupportedOperationException
}

/** Writes the values of records. Their key is the partition, which the file does not need. */
private[skewext] trait ValuesOut extends SerializationStream {
  override def writeKey[T: ClassTag](key: T): SerializationStream = this
  override def writeAll[T: ClassTag](values: Iterator[T]): SerializationStream =
    throw new UnsupportedOperationException
  override def writeObject[T: ClassTag](value: T): SerializationStream =
    throw new UnsupportedOperationException
}

/** Returns records by `asKeyValueIterator` only. */
private[skewext] trait RecordsIn extends DeserializationStream {
  override def asIterator: Iterator[Any] = throw new UnsupportedOperationException
  override def readKey[T: ClassTag](): T = throw new UnsupportedOperationException
  override def readValue[T: ClassTag](): T = throw new UnsupportedOperationException
  override def readObject[T: ClassTag](): T = throw new UnsupportedOperationException
}
