package io.github.skewext.shuffle

import java.io.{EOFException, IOException, InputStream}
import java.nio.ByteOrder

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.unsafe.Platform

/**
 * The rows of one block that Spark's `UnsafeRowSerializer` wrote, read by the buffer. The bytes are
 * a row's size in four bytes (big-endian) and the row. Spark passes four bytes and one row at a
 * time through three streams. As with Spark's, a row is valid until the next one is requested: it
 * points into the buffer.
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
        BulkRowReader.bigEndian(Platform.getInt(buffer, Platform.BYTE_ARRAY_OFFSET + position))
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

  def newBuffer: Array[Byte] = new Array[Byte](BufferSize)

  /** Converts from the byte order of `DataOutputStream`. */
  private def bigEndian(value: Int): Int =
    if (ByteOrder.nativeOrder == ByteOrder.LITTLE_ENDIAN) Integer.reverseBytes(value) else value
}
