package org.apache.spark.sql.skewext.lab

import org.apache.spark.unsafe.Platform

/** An array of bytes that grows. Writers that are in a loop ask for room once, before it. */
private final class Bytes(initial: Int) {
  var array: Array[Byte] = new Array[Byte](initial)
  var size = 0

  def ensure(more: Int): Unit =
    if (array.length - size < more) {
      array = java.util.Arrays.copyOf(array, math.max(array.length * 2L, size.toLong + more).toInt)
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

  def put(from: Array[Byte], offset: Int, length: Int): Unit = {
    ensure(length)
    System.arraycopy(from, offset, array, size, length)
    size += length
  }
}

private[lab] object Bytes {

  /**
   * Copies exactly `length` bytes. Keys are short, and a call of `copyMemory` or `arraycopy` takes
   * longer than the words of such a one.
   */
  def copyShort(from: AnyRef, fromAt: Long, to: AnyRef, toAt: Long, length: Int): Unit =
    if (length > 64) {
      Platform.copyMemory(from, fromAt, to, toAt, length.toLong)
    } else if (length >= 8) {
      val last = length - 8
      var i = 0
      while (i < last) {
        Platform.putLong(to, toAt + i, Platform.getLong(from, fromAt + i))
        i += 8
      }
      // Overlaps the word before it, where the length is no multiple of eight.
      Platform.putLong(to, toAt + last, Platform.getLong(from, fromAt + last))
    } else if (length >= 4) {
      val last = Platform.getInt(from, fromAt + length - 4)
      Platform.putInt(to, toAt, Platform.getInt(from, fromAt))
      Platform.putInt(to, toAt + length - 4, last)
    } else {
      var i = 0
      while (i < length) {
        Platform.putByte(to, toAt + i, Platform.getByte(from, fromAt + i))
        i += 1
      }
    }
}
