package io.github.skewext.internal

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
   * Copies bytes of any number, and no others: words, of which the last one overlaps that before it where
   * the number is no multiple of eight.
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

  /** As long as an array can be on any JVM. */
  val MostBytes: Long = Int.MaxValue - 15L

  /**
   * How long an array is made for so many bytes, of which there may be more: twice as long, but of large
   * rows, which are few, only by a quarter, as the old array is still there while the new one is filled.
   */
  def grown(needed: Long): Int =
    math.min(MostBytes, if (needed > Large) needed + needed / 4 else 2 * needed).toInt

  private val Large = 32L << 20

  // Up to here the call costs more than the copying.
  private val WordByWord = 128
}
