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

  // Up to here the call costs more than the copying.
  private val WordByWord = 128
}
