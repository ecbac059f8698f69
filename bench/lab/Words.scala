package org.apache.spark.sql.skewext.lab

import org.apache.spark.unsafe.Platform

/** A run of 64-bit words: its smallest one, and how far above it the others are, in as few bits. */
private[lab] object Words {

  /** Above this a value and the bits before it do not fit a word that begins at a whole byte. */
  private val MostBits = 56

  /** Appends `values(from until until)`. */
  def encode(values: Array[Long], from: Int, until: Int, wholeBytes: Boolean, out: Bytes): Unit = {
    var least = Long.MaxValue
    var most = Long.MinValue
    var i = from
    while (i < until) {
      val value = values(i)
      least = math.min(least, value)
      most = math.max(most, value)
      i += 1
    }
    val exact = if (from == until) 0 else 64 - java.lang.Long.numberOfLeadingZeros(most - least)
    val width = if (exact > MostBits) 64 else if (wholeBytes) (exact + 7) & ~7 else exact
    out.putByte(width)
    if (width == 64) {
      val size = (until - from) * 8
      out.ensure(size)
      Platform.copyMemory(
        values,
        Platform.LONG_ARRAY_OFFSET + from * 8L,
        out.array,
        (Platform.BYTE_ARRAY_OFFSET + out.size).toLong,
        size.toLong)
      out.size += size
    } else {
      out.putLong(least)
      if (width > 0) pack(values, from, until, least, width, out)
    }
  }

  private def pack(
      values: Array[Long],
      from: Int,
      until: Int,
      least: Long,
      width: Int,
      out: Bytes): Unit = {
    val size = packedSize(until - from, width)
    out.ensure(size + 8)
    val array = out.array
    var at = (Platform.BYTE_ARRAY_OFFSET + out.size).toLong
    var word = 0L
    var bits = 0
    var i = from
    while (i < until) {
      val value = values(i) - least
      word |= value << bits
      bits += width
      if (bits >= 64) {
        Platform.putLong(array, at, word)
        at += 8
        bits -= 64
        word = value >>> (width - bits)
      }
      i += 1
    }
    Platform.putLong(array, at, word)
    out.size += size
  }

  private def packedSize(count: Int, width: Int): Int = ((count.toLong * width + 7) >>> 3).toInt

  /** Reads `count` values from `at` on; gives where they end. Up to 8 bytes behind it are touched. */
  def decode(in: Array[Byte], at: Int, count: Int, values: Array[Long]): Int = {
    val width = in(at)
    val begin = at + 1
    if (width == 64) {
      Platform.copyMemory(
        in,
        (Platform.BYTE_ARRAY_OFFSET + begin).toLong,
        values,
        Platform.LONG_ARRAY_OFFSET.toLong,
        count * 8L)
      begin + count * 8
    } else {
      val least = Platform.getLong(in, (Platform.BYTE_ARRAY_OFFSET + begin).toLong)
      if (width == 0) java.util.Arrays.fill(values, 0, count, least)
      else unpack(in, begin + 8, width, least, count, values)
      begin + 8 + packedSize(count, width)
    }
  }

  private def unpack(
      in: Array[Byte],
      begin: Int,
      width: Int,
      least: Long,
      count: Int,
      values: Array[Long]): Unit = {
    val base = (Platform.BYTE_ARRAY_OFFSET + begin).toLong
    val mask = (1L << width) - 1
    var bit = 0L
    var i = 0
    while (i < count) {
      values(i) = least + ((Platform.getLong(in, base + (bit >>> 3)) >>> (bit & 7).toInt) & mask)
      bit += width
      i += 1
    }
  }
}
