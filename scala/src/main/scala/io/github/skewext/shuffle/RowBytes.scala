package io.github.skewext.shuffle

import org.apache.spark.unsafe.Platform

object RowBytes {

  /** Copies an UnsafeRow, whose size is always a multiple of eight bytes. */
  def copy(from: AnyRef, fromOffset: Long, to: AnyRef, toOffset: Long, size: Int): Unit =
    if (size > WordByWord) {
      Platform.copyMemory(from, fromOffset, to, toOffset, size)
    } else {
      var i = 0
      while (i < size) {
        Platform.putLong(to, toOffset + i, Platform.getLong(from, fromOffset + i))
        i += 8
      }
    }

  /**
   * Copies exactly `size` bytes. It copies words; if `size` is not a multiple of eight, the last
   * word overlaps the one before it.
   */
  def copyShort(from: AnyRef, fromOffset: Long, to: AnyRef, toOffset: Long, size: Int): Unit =
    if (size > WordByWord) {
      Platform.copyMemory(from, fromOffset, to, toOffset, size)
    } else if (size >= 8) {
      val last = size - 8
      var i = 0
      while (i < last) {
        Platform.putLong(to, toOffset + i, Platform.getLong(from, fromOffset + i))
        i += 8
      }
      Platform.putLong(to, toOffset + last, Platform.getLong(from, fromOffset + last))
    } else {
      var i = 0
      while (i < size) {
        Platform.putByte(to, toOffset + i, Platform.getByte(from, fromOffset + i))
        i += 1
      }
    }

  /**
   * Copies bytes and fills their last word with zeros, because rows are compared by all their bytes,
   * including the padding after a string. It reads whole words, of a little-endian machine.
   */
  def copyPadded(from: AnyRef, fromOffset: Long, to: AnyRef, toOffset: Long, size: Int): Unit = {
    val whole = size & ~7
    copy(from, fromOffset, to, toOffset, whole)
    if (size > whole) {
      val last = Platform.getLong(from, fromOffset + whole) & (-1L >>> (64 - 8 * (size - whole)))
      Platform.putLong(to, toOffset + whole, last)
    }
  }

  /** The largest array size that every JVM supports. */
  val MostBytes: Long = Int.MaxValue - 15L

  /**
   * The new size of an array that needs `needed` bytes and may grow further: twice as much. Above
   * 32 MB it is only a quarter more, because such rows are few, and the old array exists until its
   * bytes have been copied.
   */
  def grown(needed: Long): Int =
    math.min(MostBytes, if (needed > Large) needed + needed / 4 else 2 * needed).toInt

  private val Large = 32L << 20

  // Up to this size, calling `copyMemory` costs more than copying words.
  private val WordByWord = 128
}
