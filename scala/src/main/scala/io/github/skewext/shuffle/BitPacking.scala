package io.github.skewext.shuffle

import java.io.IOException

import org.apache.spark.unsafe.Platform

/**
 * Frame-of-reference bit packing of a run of 64-bit words. It stores the smallest word, then the
 * difference of each word from it, in as few bits as the largest difference needs. Equal words take
 * nine bytes, regardless of their number.
 *
 * A run of few different words has a mark and the number of these in four bytes. Two packed runs
 * follow: the different words, and the position of each word among them.
 */
object BitPacking {

  /**
   * With more bits, a word and the bits before it in its first byte would not fit into eight bytes.
   */
  private val MostBits = 56
  private val Unpacked = 64
  private val Different = 65

  /** Bytes after a run that reading it may touch. */
  val Slack = 8

  /**
   * Appends `values(from until until)`, at least one word.
   *
   * @param different looks for few different words; null for no search.
   */
  def encode(
      values: Array[Long],
      from: Int,
      until: Int,
      out: ByteBuilder,
      different: DifferentWords = null): Unit = {
    var least = values(from)
    var most = least
    var i = from + 1
    while (i < until) {
      val value = values(i)
      least = math.min(least, value)
      most = math.max(most, value)
      i += 1
    }
    // A difference that overflows is negative, so it counts as 64 bits.
    val exact = 64 - java.lang.Long.numberOfLeadingZeros(most - least)
    if ((different ne null) && different.find(values, from, until, exact)) {
      out.putByte(Different)
      out.putInt(different.count)
      encode(different.words, 0, different.count, out, different = null)
      encode(different.numbers, 0, until - from, out, different = null)
    } else if (exact > MostBits) {
      out.putByte(Unpacked)
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
      out.putByte(exact)
      out.putLong(least)
      if (exact > 0) pack(values, from, until, least, exact, out)
    }
  }

  private def pack(
      values: Array[Long],
      from: Int,
      until: Int,
      least: Long,
      width: Int,
      out: ByteBuilder): Unit = {
    val size = sizeOf(until - from, width)
    out.ensure(size + Slack)
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

  private def sizeOf(count: Int, width: Int): Int = ((count.toLong * width + 7) >>> 3).toInt

  /** Returns the end of `count` words that begin at `at`, which must be at `until` or before. */
  def endOf(in: Array[Byte], at: Int, until: Int, count: Int): Int =
    if (at + 5 <= until && in(at) == Different) {
      val few = countAt(in, at)
      if (few < 1 || few > count) throw new IOException(s"$few different words in a shuffle block")
      endOfPacked(in, endOfPacked(in, at + 5, until, few), until, count)
    } else {
      endOfPacked(in, at, until, count)
    }

  private def countAt(in: Array[Byte], at: Int): Int =
    Platform.getInt(in, (Platform.BYTE_ARRAY_OFFSET + at + 1).toLong)

  private def endOfPacked(in: Array[Byte], at: Int, until: Int, count: Int): Int = {
    if (at >= until) throw new IOException("A column that is not there in a shuffle block")
    val width = in(at)
    val begin = at + 1
    if (width != Unpacked && (width < 0 || width > MostBits)) {
      throw new IOException(s"Words of $width bits in a shuffle block")
    }
    val end = if (width == Unpacked) begin + 8 * count else begin + 8 + sizeOf(count, width)
    if (end > until) throw new IOException("A column that goes beyond its shuffle block")
    end
  }

  /** Reads `count` words at `at`, whose end is known. The array has `Slack` more bytes. */
  def decode(in: Array[Byte], at: Int, count: Int, values: Array[Long]): Unit =
    if (in(at) == Different) decodeDifferent(in, at, count, values)
    else decodePacked(in, at, count, values)

  private def decodeDifferent(in: Array[Byte], at: Int, count: Int, values: Array[Long]): Unit = {
    val words = new Array[Long](countAt(in, at))
    decodePacked(in, at + 5, words.length, words)
    decodePacked(in, endOfPacked(in, at + 5, in.length, words.length), count, values)
    var i = 0
    while (i < count) {
      val number = values(i)
      if (number < 0 || number >= words.length) {
        throw new IOException("A word that is not there in a shuffle block")
      }
      values(i) = words(number.toInt)
      i += 1
    }
  }

  private def decodePacked(in: Array[Byte], at: Int, count: Int, values: Array[Long]): Unit = {
    val width = in(at)
    val base = (Platform.BYTE_ARRAY_OFFSET + at + 1).toLong
    if (width == Unpacked) {
      Platform.copyMemory(in, base, values, Platform.LONG_ARRAY_OFFSET.toLong, count * 8L)
    } else {
      val least = Platform.getLong(in, base)
      if (width == 0) java.util.Arrays.fill(values, 0, count, least)
      else unpack(in, base + 8, width, least, count, values)
    }
  }

  private def unpack(
      in: Array[Byte],
      base: Long,
      width: Int,
      least: Long,
      count: Int,
      values: Array[Long]): Unit = {
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
