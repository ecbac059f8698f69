package io.github.skewext.shuffle

import java.util.Arrays

import org.apache.spark.unsafe.Platform

/**
 * Encodes the strings of blocks. If they contain few different bytes (numbers, dates, hexadecimal
 * digits), each byte is replaced by its index in this alphabet, in at most six bits. In such
 * strings LZ4 searches long for repetitions and finds few, and a reader has to copy these together
 * again. In packed bits it finds at once that there are none.
 *
 * A block has the number of different bytes, these bytes, and the index of each byte of the
 * strings, the first in the lowest bits. Or it has 0 and the unpacked strings.
 */
final class SmallAlphabetEncoding {
  import SmallAlphabetEncoding._

  // The index of each byte in the alphabet; negative if it has none.
  private[this] val numbers = new Array[Byte](256)
  private[this] var alphabet = Array.emptyByteArray
  private[this] var width = 0
  private[this] val sample = new ByteBuilder(0)

  /**
   * Prepares the strings of a flush. A sample of them determines the alphabet, and whether they are
   * packed.
   *
   * @param compressed the number of bytes to which the shuffle's codec compresses the first bytes
   *                   of an array
   */
  def begin(bytes: Array[Byte], length: Int, compressed: (Array[Byte], Int) => Int): Unit = {
    val some = math.min(length, SampleBytes)
    Arrays.fill(numbers, -1: Byte)
    alphabet = bytesIn(bytes, some)
    width = widthOf(alphabet.length)
    if (isLess(some)) {
      alphabet.indices.foreach(i => numbers(alphabet(i) & 0xff) = i.toByte)
      sample.size = 0
      pack(bytes, Begin, some, sample)
      if (compressed(sample.array, sample.size) >= compressed(bytes, some)) width = NoWidth
    }
  }

  /**
   * The different bytes among the first bytes in ascending order; more than `Most` if there are too
   * many.
   */
  private def bytesIn(bytes: Array[Byte], length: Int): Array[Byte] = {
    var known = 0
    var i = 0
    while (i < length && known <= Most) {
      val byte = bytes(i) & 0xff
      if (numbers(byte) < 0) {
        numbers(byte) = 0
        known += 1
      }
      i += 1
    }
    val found = (0 until 256).filter(numbers(_) == 0).map(_.toByte).toArray
    Arrays.fill(numbers, -1: Byte)
    found
  }

  private def isLess(length: Int): Boolean =
    width < NoWidth && length <= MostUnpacked &&
      1 + alphabet.length + packedSize(length, width) < length

  /** Appends `length` bytes that begin at an address in the array. */
  def encode(bytes: Array[Byte], from: Long, length: Int, out: ByteBuilder): Unit = {
    val before = out.size
    if (isLess(length)) {
      out.putByte(alphabet.length)
      out.put(alphabet, Begin, alphabet.length)
      if (pack(bytes, from, length, out)) return
      out.size = before
    }
    out.putByte(Plain)
    out.put(bytes, from, length)
  }

  /** Returns false if a byte was not in the sample. */
  private def pack(bytes: Array[Byte], from: Long, length: Int, out: ByteBuilder): Boolean = {
    val (numbers, width) = (this.numbers, this.width)
    out.ensure(packedSize(length, width) + 8)
    val array = out.array
    var at = Begin + out.size
    val eights = from + (length & ~7)
    var i = from
    while (i < eights) {
      val eight = Platform.getLong(bytes, i)
      val a = numbers((eight & 0xff).toInt).toLong
      val b = numbers((eight >>> 8 & 0xff).toInt).toLong
      val c = numbers((eight >>> 16 & 0xff).toInt).toLong
      val d = numbers((eight >>> 24 & 0xff).toInt).toLong
      val e = numbers((eight >>> 32 & 0xff).toInt).toLong
      val f = numbers((eight >>> 40 & 0xff).toInt).toLong
      val g = numbers((eight >>> 48 & 0xff).toInt).toLong
      val h = numbers((eight >>> 56).toInt).toLong
      if ((a | b | c | d | e | f | g | h) < 0) return false
      val four = a | b << width | c << 2 * width | d << 3 * width
      val others = e | f << width | g << 2 * width | h << 3 * width
      Platform.putLong(array, at, four | others << 4 * width)
      at += width
      i += 8
    }
    var word = 0L
    var bits = 0
    while (i < from + length) {
      val number = numbers(Platform.getByte(bytes, i) & 0xff).toLong
      if (number < 0) return false
      word |= number << bits
      bits += width
      i += 1
    }
    Platform.putLong(array, at, word)
    out.size += packedSize(length, width)
    true
  }
}

object SmallAlphabetEncoding {
  private[shuffle] val Plain = 0

  /** Maximum number of different bytes. Six bits for each byte still save a quarter. */
  private[shuffle] val Most = 64

  /** The number of bits of an index into so many different bytes. */
  private[shuffle] def widthOf(different: Int): Int =
    math.max(1, 32 - Integer.numberOfLeadingZeros(different - 1))

  /** Maximum length of packed strings, as a reader holds an unpacked copy of them. */
  private[shuffle] val MostUnpacked = 16 << 20

  private val NoWidth = widthOf(Most) + 1

  private[shuffle] def packedSize(length: Int, width: Int): Int =
    ((length.toLong * width + 7) >>> 3).toInt

  // The size of LZ4's blocks in Spark.
  private val SampleBytes = 32 << 10

  private val Begin = Platform.BYTE_ARRAY_OFFSET.toLong
}
