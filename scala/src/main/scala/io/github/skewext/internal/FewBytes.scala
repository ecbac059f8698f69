package io.github.skewext.internal

import java.util.Arrays

import org.apache.spark.unsafe.Platform

/**
 * Writes the strings of blocks. Of strings with few different bytes (numbers, dates, hexadecimal digits) each
 * byte takes only as many bits as tell those apart, up to six. LZ4 looks long for what repeats in such
 * strings, finds little, and a reader has to put it together again; where bits are packed it sees at once
 * that there is nothing to find.
 *
 * In a block: how many different bytes there are, these bytes, and the number of each byte of the strings
 * among them, the first in the lowest bits. Or 0, and the strings as they are.
 */
final class FewBytes {
  import FewBytes._

  // The number of each byte; those without one have a negative one.
  private[this] val numbers = new Array[Byte](256)
  private[this] var alphabet = Array.emptyByteArray
  private[this] var width = 0
  private[this] val sample = new ByteBuilder(0)

  /**
   * Before the strings of a flush: whether they are packed, and which bytes there are, as a part of them says.
   *
   * @param compressed how many bytes the shuffle's codec leaves of the first ones of an array
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

  /** Different ones among the first bytes, in order, or more than are packed. */
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

  /** Appends `length` bytes that begin at an address in an array. */
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

  /** False if there is a byte that was not in the sample. */
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

object FewBytes {
  private[internal] val Plain = 0

  /** How many different ones are packed; a third of the room is saved then, else a quarter. */
  private[internal] val Most = 64

  /** What tells so many different bytes apart. */
  private[internal] def widthOf(different: Int): Int =
    math.max(1, 32 - Integer.numberOfLeadingZeros(different - 1))

  /** Of longer strings a reader has no second copy. */
  private[internal] val MostUnpacked = 16 << 20

  private val NoWidth = widthOf(Most) + 1

  private[internal] def packedSize(length: Int, width: Int): Int =
    ((length.toLong * width + 7) >>> 3).toInt

  // LZ4's blocks in Spark.
  private val SampleBytes = 32 << 10

  private val Begin = Platform.BYTE_ARRAY_OFFSET.toLong
}
