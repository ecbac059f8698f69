package io.github.skewext.shuffle

import org.apache.spark.unsafe.Platform

/**
 * A growing array of bytes. Code that writes many values in a loop calls `ensure` once before the
 * loop and writes to `array`.
 */
final class ByteBuilder(initial: Int) {
  var array: Array[Byte] = new Array[Byte](initial)
  var size = 0

  def ensure(more: Int): Unit =
    if (array.length - size < more) {
      // Writes by address do not check bounds, so the array must not be too short.
      val needed = ByteBuilder.checked(size.toLong + more)
      array = java.util.Arrays.copyOf(array, RowBytes.grown(needed))
    }

  /** Removes all bytes. It keeps the array, unless that was made for unusually long values. */
  def clear(): Unit = {
    size = 0
    if (array.length > ByteBuilder.MostKept) array = Array.emptyByteArray
  }

  def copy(): ByteBuilder = {
    val copied = new ByteBuilder(size)
    copied.put(array, Platform.BYTE_ARRAY_OFFSET, size)
    copied
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

object ByteBuilder {

  /** Arrays for values of usual lengths have at most so many bytes. */
  val MostKept: Int = 32 << 20

  /** A size, if an array can have it. */
  def checked(size: Long): Int = {
    if (size > RowBytes.MostBytes) throw new OutOfMemoryError(s"$size bytes in one array")
    size.toInt
  }
}
