package io.github.skewext.shuffle

import java.io.IOException

import org.apache.spark.unsafe.Platform

/** Decodes the strings of one column that [[SmallAlphabetEncoding]] has encoded, block by block. */
private[shuffle] final class SmallAlphabetReader {
  import SmallAlphabetEncoding._

  private[this] var unpacked = new Array[Byte](0)

  // Lookup table from a pair of indices to two bytes, and the alphabet for which it was built.
  private[this] var pairs = new Array[Short](0)
  private[this] val alphabet = new Array[Byte](Most)
  private[this] var different = 0

  /** The array that holds the strings decoded last, and their start: in the block, or unpacked. */
  var bytes: Array[Byte] = _
  var begin = 0

  /** The maximum number of bytes of strings that begin at `at`. */
  def most(in: Array[Byte], at: Int, until: Int): Int = {
    if (at >= until) throw new IOException("Strings that are not there in a shuffle block")
    val different = in(at).toInt
    val left = until - at - 1 - different
    if (different < 0 || different > Most || left < 0) {
      throw new IOException(s"Strings of $different different bytes in a shuffle block")
    }
    if (different == Plain) left
    else math.min(left * 8L / widthOf(different), MostUnpacked.toLong).toInt
  }

  /** The end of `length` bytes, at most the number that `most` returns. */
  def endOf(in: Array[Byte], at: Int, length: Int): Int = {
    val different = in(at).toInt
    val size = if (different == Plain) length else packedSize(length, widthOf(different))
    at + 1 + different + size
  }

  /** Decodes `length` bytes. */
  def decode(in: Array[Byte], at: Int, length: Int): Unit = {
    val different = in(at).toInt
    if (different == Plain) {
      bytes = in
      begin = at + 1
    } else {
      val width = widthOf(different)
      learn(in, at + 1, different)
      // The last word is written beyond the end.
      if (unpacked.length < length + 8) unpacked = new Array[Byte](RowBytes.grown(length + 8L))
      unpack(in, at + 1 + different, width, length)
      bytes = unpacked
      begin = 0
    }
  }

  private def unpack(in: Array[Byte], at: Int, width: Int, length: Int): Unit = {
    val (pairs, to) = (this.pairs, unpacked)
    val mask = (1L << 2 * width) - 1
    var from = Platform.BYTE_ARRAY_OFFSET.toLong + at
    var next = Platform.BYTE_ARRAY_OFFSET.toLong
    val end = next + length
    while (next < end) {
      val word = Platform.getLong(in, from)
      val a = pairs((word & mask).toInt) & 0xffffL
      val b = pairs((word >>> 2 * width & mask).toInt) & 0xffffL
      val c = pairs((word >>> 4 * width & mask).toInt) & 0xffffL
      val d = pairs((word >>> 6 * width & mask).toInt) & 0xffffL
      Platform.putLong(to, next, a | b << 16 | c << 32 | d << 48)
      from += width
      next += 8
    }
  }

  /**
   * Builds the lookup table, unless the alphabet is that of the previous block, as in most blocks.
   */
  private def learn(in: Array[Byte], at: Int, count: Int): Unit = {
    var i = 0
    if (different == count) while (i < count && alphabet(i) == in(at + i)) i += 1
    if (i < count) {
      different = count
      System.arraycopy(in, at, alphabet, 0, count)
      val width = widthOf(count)
      val numbers = 1 << width
      if (pairs.length < numbers * numbers) pairs = new Array[Short](numbers * numbers)
      // A damaged block may contain an index beyond the alphabet.
      def byteOf(number: Int): Int = if (number < count) alphabet(number) & 0xff else 0
      for (high <- 0 until numbers; low <- 0 until numbers) {
        pairs(high << width | low) = (byteOf(low) | byteOf(high) << 8).toShort
      }
    }
  }
}
