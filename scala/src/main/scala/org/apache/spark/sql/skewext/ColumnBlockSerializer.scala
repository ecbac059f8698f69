package org.apache.spark.sql.skewext

import java.io.{EOFException, IOException, InputStream, OutputStream}
import java.nio.{ByteBuffer, ByteOrder}

import scala.reflect.ClassTag

import io.github.skewext.internal.{ByteBuilder, ColumnBlockRows, PackedWords, RowBytes}

import org.apache.spark.serializer.{DeserializationStream, SerializationStream, Serializer, SerializerInstance}
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.types.DataType

/**
 * Writes blocks of columns as Spark's shuffle writers write a record, and reads their rows.
 *
 * Lives here because `supportsRelocationOfSerializedObjects` is `private[spark]`.
 */
final class ColumnBlockSerializer(types: Seq[DataType]) extends Serializer with Serializable {
  override def newInstance(): SerializerInstance = new ColumnBlockSerializerInstance(types)
  override def supportsRelocationOfSerializedObjects: Boolean = true
}

private final class ColumnBlockSerializerInstance(types: Seq[DataType]) extends SerializerInstance {
  override def serializeStream(out: OutputStream): SerializationStream = new ColumnBlockOutput(out)
  override def deserializeStream(in: InputStream): DeserializationStream =
    new ColumnBlockInput(in, types)

  override def serialize[T: ClassTag](value: T): ByteBuffer =
    throw new UnsupportedOperationException
  override def deserialize[T: ClassTag](bytes: ByteBuffer): T =
    throw new UnsupportedOperationException
  override def deserialize[T: ClassTag](bytes: ByteBuffer, loader: ClassLoader): T =
    throw new UnsupportedOperationException
}

private final class ColumnBlockOutput(out: OutputStream) extends SerializationStream {
  override def writeKey[T: ClassTag](key: T): SerializationStream = this

  override def writeValue[T: ClassTag](value: T): SerializationStream = {
    val block = value.asInstanceOf[ByteBuilder]
    out.write(block.array, 0, block.size)
    this
  }

  override def flush(): Unit = out.flush()
  override def close(): Unit = out.close()
  override def writeObject[T: ClassTag](value: T): SerializationStream =
    throw new UnsupportedOperationException
}

private final class ColumnBlockInput(in: InputStream, types: Seq[DataType])
    extends DeserializationStream {

  override def asKeyValueIterator: Iterator[(Int, UnsafeRow)] = new Iterator[(Int, UnsafeRow)] {
    private[this] val rows = new ColumnBlockRows(types)
    private[this] val keyAndRow = (0, rows.row)
    private[this] var block = new Array[Byte](1 << 16)

    // The next block's bytes come where those of the last row are not: it was copied to a buffer.
    override def hasNext: Boolean = rows.hasNext || nextBlock()

    override def next(): (Int, UnsafeRow) = {
      if (!hasNext) throw new NoSuchElementException
      rows.next()
      keyAndRow
    }

    private def nextBlock(): Boolean = {
      val first = in.read()
      if (first < 0) {
        in.close()
        false
      } else {
        block(0) = first.toByte
        fill(1, 4)
        val size = ByteBuffer.wrap(block).order(ByteOrder.nativeOrder).getInt
        if (size <= 0 || size > RowBytes.MostBytes - PackedWords.Slack) {
          throw new IOException(s"A shuffle block of $size bytes")
        }
        fill(0, size)
        rows.open(block, size)
        true
      }
    }

    /** Grows with what is there, so that a size that is none does not take memory. */
    private def fill(from: Int, until: Int): Unit = {
      var at = from
      while (at < until) {
        if (block.length - at <= PackedWords.Slack) {
          block = java.util.Arrays.copyOf(block, RowBytes.grown(block.length + 1L))
        }
        val read = in.read(block, at, math.min(until - at, block.length - at - PackedWords.Slack))
        if (read < 0) throw new EOFException
        at += read
      }
    }
  }

  override def close(): Unit = in.close()
  override def asIterator: Iterator[Any] = throw new UnsupportedOperationException
  override def readKey[T: ClassTag](): T = throw new UnsupportedOperationException
  override def readValue[T: ClassTag](): T = throw new UnsupportedOperationException
  override def readObject[T: ClassTag](): T = throw new UnsupportedOperationException
}
