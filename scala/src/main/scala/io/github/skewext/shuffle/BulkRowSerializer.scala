package io.github.skewext.shuffle

import java.io.{EOFException, IOException, InputStream, OutputStream}
import java.nio.ByteOrder

import scala.reflect.ClassTag

import org.apache.spark.serializer.{DeserializationStream, SerializationStream, Serializer, SerializerInstance}
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.unsafe.Platform

/**
 * Writes and reads bulk rows: the same bytes as Spark's `UnsafeRowSerializer`, but by the buffer.
 * The bytes are a row's size in four bytes (big-endian) and the row. Spark's serializer passes four
 * bytes and one row at a time through three streams, on both sides. As with Spark's, a row that was
 * read is valid until the next one is requested: it points into the buffer.
 *
 * Like Spark's, it has only the methods that shuffles call. Lives here because
 * `supportsRelocationOfSerializedObjects` is `private[spark]`.
 *
 * @param dataSize the bytes of the written rows
 */
class BulkRowSerializer(numFields: Int, dataSize: SQLMetric) extends Serializer with Serializable {

  override def newInstance(): SerializerInstance =
    new BulkRowSerializerInstance(numFields, dataSize)

  override def supportsRelocationOfSerializedObjects: Boolean = true
}

private object BulkRowSerializer {

  /** Converts from and to the byte order of `DataOutputStream`. */
  def bigEndian(value: Int): Int =
    if (ByteOrder.nativeOrder == ByteOrder.LITTLE_ENDIAN) Integer.reverseBytes(value) else value
}

private final class BulkRowSerializerInstance(numFields: Int, dataSize: SQLMetric)
    extends StreamsOnly {

  override def serializeStream(out: OutputStream): SerializationStream =
    new BulkRowOutput(out, dataSize)

  override def deserializeStream(in: InputStream): DeserializationStream =
    new BulkRowInput(in, numFields)
}

private final class BulkRowOutput(out: OutputStream, dataSize: SQLMetric) extends ValuesOut {

  private[this] var buffer = new Array[Byte](BulkRowOutput.BufferSize)
  private[this] var used = 0
  private[this] var rowBytes = 0L

  override def writeValue[T: ClassTag](value: T): SerializationStream = {
    val row = value.asInstanceOf[UnsafeRow]
    val size = row.getSizeInBytes
    if (size > buffer.length - 4) {
      writeThrough(row, size)
    } else {
      if (used + 4 + size > buffer.length) writeOut()
      write(row, size)
    }
    rowBytes += size
    this
  }

  private def write(row: UnsafeRow, size: Int): Unit = {
    val position = Platform.BYTE_ARRAY_OFFSET + used
    Platform.putInt(buffer, position, BulkRowSerializer.bigEndian(size))
    RowBytes.copy(row.getBaseObject, row.getBaseOffset, buffer, position + 4, size)
    used += 4 + size
  }

  /**
   * Writes a row that is larger than the buffer. Buffers are small, because each partition has one.
   */
  private def writeThrough(row: UnsafeRow, size: Int): Unit = {
    writeOut()
    Platform.putInt(buffer, Platform.BYTE_ARRAY_OFFSET, BulkRowSerializer.bigEndian(size))
    out.write(buffer, 0, 4)
    row.writeToStream(out, buffer)
  }

  private def writeOut(): Unit = {
    out.write(buffer, 0, used)
    used = 0
    dataSize.add(rowBytes)
    rowBytes = 0
  }

  override def flush(): Unit = {
    writeOut()
    out.flush()
  }

  override def close(): Unit = if (buffer != null) {
    writeOut()
    buffer = null
    out.close()
  }
}

private object BulkRowOutput {
  // A map task has one for every partition.
  private val BufferSize = 4096
}

private final class BulkRowInput(in: InputStream, numFields: Int) extends RecordsIn {

  override def asKeyValueIterator: Iterator[(Int, UnsafeRow)] = new Iterator[(Int, UnsafeRow)] {
    private[this] val reader =
      new BulkRowReader(in, new UnsafeRow(numFields), BulkRowReader.smallBuffer)
    private[this] val keyAndRow = (0, reader.row)

    override def hasNext: Boolean = reader.hasNext

    override def next(): (Int, UnsafeRow) = {
      reader.next()
      keyAndRow
    }
  }

  override def close(): Unit = in.close()
}

/**
 * The rows of one block.
 *
 * @param row points to each row in turn
 * @param first the initial buffer
 */
private final class BulkRowReader(in: InputStream, val row: UnsafeRow, first: Array[Byte]) {

  private[this] var buffer = first
  private[this] var position = 0
  private[this] var end = 0
  private[this] var size = {
    fill(4)
    nextSize()
  }

  def hasNext: Boolean = size >= 0

  /** Points `row` to the next row. */
  def next(): Unit = {
    if (size < 0) throw new NoSuchElementException
    // Reads the size of the next row as well, so that the buffer is not touched until that row is
    // requested.
    if (end - position < size + 4) {
      fill(size + 4)
      if (end - position < size) throw new EOFException
    }
    row.pointTo(buffer, Platform.BYTE_ARRAY_OFFSET + position, size)
    position += size
    size = nextSize()
  }

  /**
   * Returns the size of the row at `position`, and moves `position` to its first byte. Negative at
   * the end.
   */
  private def nextSize(): Int =
    if (end - position >= 4) {
      val next =
        BulkRowSerializer.bigEndian(Platform.getInt(buffer, Platform.BYTE_ARRAY_OFFSET + position))
      if (next < 0) throw new IOException(s"A row of $next bytes in a shuffle block")
      position += 4
      next
    } else if (end == position) {
      in.close()
      -1
    } else {
      throw new EOFException
    }

  /** Reads until `needed` bytes are available, or until the end. */
  private def fill(needed: Int): Unit = {
    val rest = end - position
    val target =
      if (needed > buffer.length) new Array[Byte](RowBytes.grown(needed))
      else if (end == buffer.length && end < BulkRowReader.BufferSize) BulkRowReader.newBuffer
      else buffer
    System.arraycopy(buffer, position, target, 0, rest)
    buffer = target
    position = 0
    end = rest
    var read = 0
    while (end < needed && read >= 0) {
      read = in.read(buffer, end, buffer.length - end)
      if (read > 0) end += read
    }
  }
}

private object BulkRowReader {
  private val BufferSize = 1 << 16
  private val SmallSize = 1 << 10

  def newBuffer: Array[Byte] = new Array[Byte](BufferSize)

  /** For a block with few rows. Many map tasks with many partitions write such blocks. */
  def smallBuffer: Array[Byte] = new Array[Byte](SmallSize)
}
