package io.github.skewext.internal

import org.apache.spark.unsafe.Platform

/** Bytes that grow. Who writes many in a loop asks for room once, before it. */
final class ByteBuilder(initial: Int) {
  var array: Array[Byte] = new Array[Byte](initial)
  var size = 0

  def ensure(more: Int): Unit =
    if (array.length - size < more) {
      val needed = Math.addExact(size, more)
      // What is written by address would go beyond an array that is too short.
      if (needed > RowBytes.MostBytes) throw new OutOfMemoryError(s"$needed bytes in one array")
      array = java.util.Arrays.copyOf(array, RowBytes.grown(needed))
    }

  def putByte(value: Int): Unit = {
    ensure(1)
    array(size) = value.toByte
    size += 1
  }

  def putInt(value: Int): Unit = {
    ensure(4)
    Platform.putInt(array, Platform.BYTE_ARRAY_OFFSET + size, value)
    size += 4
  }

  def putLong(value: Long): Unit = {
    ensure(8)
    Platform.putLong(array, Platform.BYTE_ARRAY_OFFSET + size, value)
    size += 8
  }

  def put(from: AnyRef, offset: Long, length: Int): Unit = {
    ensure(length)
    RowBytes.copyShort(from, offset, array, (Platform.BYTE_ARRAY_OFFSET + size).toLong, length)
    size += length
  }
}
