package org.apache.spark.sql.skewext.lab

import org.apache.spark.unsafe.Platform

/** Runs of strings: their lengths as words, and their bytes; or codes of the strings that occur. */
private object Strings {
  private val Plain = 0
  private val Coded = 1

  /** Appends `count` strings that lie one behind the other from `bytesAt` on. */
  def encode(
      lengths: Array[Long],
      from: Int,
      count: Int,
      bytes: Array[Byte],
      bytesAt: Int,
      size: Int,
      wholeBytes: Boolean,
      out: Bytes): Unit = {
    out.putByte(Plain)
    Words.encode(lengths, from, from + count, wholeBytes, out)
    out.putInt(size)
    out.put(bytes, bytesAt, size)
  }

  /** Encodes runs of codes of a dictionary that is shared by all of them, and is not written. */
  final class OfDictionary(dictionary: StringDictionary, wholeBytes: Boolean) {
    private[this] val seenIn = new Array[Int](dictionary.size)
    private[this] val localCode = new Array[Int](dictionary.size)
    private[this] var run = 0

    private[this] var codes = new Array[Long](0)
    private[this] var lengths = new Array[Long](0)
    private[this] val chars = new Bytes(1 << 10)

    def encode(values: Array[Long], from: Int, count: Int, out: Bytes): Unit = {
      if (codes.length < count) {
        codes = new Array[Long](count)
        lengths = new Array[Long](count)
      }
      run += 1
      var distinct = 0
      var i = 0
      while (i < count) {
        val code = values(from + i).toInt
        if (seenIn(code) != run) {
          seenIn(code) = run
          localCode(code) = distinct
          lengths(distinct) = code
          distinct += 1
        }
        codes(i) = localCode(code)
        i += 1
      }
      chars.size = 0
      // Entries cost their bytes and a length, codes some bits more than lengths.
      if (distinct * 2 <= count) {
        out.putByte(Coded)
        out.putInt(distinct)
        gather(lengths, distinct)
        Strings.encode(lengths, 0, distinct, chars.array, 0, chars.size, wholeBytes, out)
        Words.encode(codes, 0, count, wholeBytes, out)
      } else {
        System.arraycopy(values, from, lengths, 0, count)
        gather(lengths, count)
        Strings.encode(lengths, 0, count, chars.array, 0, chars.size, wholeBytes, out)
      }
    }

    /** Puts the strings' bytes one behind the other, and lengths in the place of codes. */
    private def gather(codes: Array[Long], count: Int): Unit = {
      chars.ensure(count * dictionary.longest)
      var i = 0
      while (i < count) {
        val code = codes(i).toInt
        val length = dictionary.length(code)
        Bytes.copyShort(
          dictionary.bytes.array,
          (Platform.BYTE_ARRAY_OFFSET + dictionary.start(code)).toLong,
          chars.array,
          (Platform.BYTE_ARRAY_OFFSET + chars.size).toLong,
          length)
        chars.size += length
        codes(i) = length
        i += 1
      }
    }
  }

  /** Where strings of a block are; reused from run to run. */
  final class Decoded {
    var starts = new Array[Int](0)
    var lengths = new Array[Int](0)
    private[this] var words = new Array[Long](0)
    private[this] var entryStarts = new Array[Int](0)
    private[this] var entryLengths = new Array[Int](0)

    /** Reads `count` strings from `at` on; gives where they end. */
    def decode(in: Array[Byte], at: Int, count: Int): Int = {
      if (starts.length < count) {
        starts = new Array[Int](count)
        lengths = new Array[Int](count)
        words = new Array[Long](count)
        entryStarts = new Array[Int](count)
        entryLengths = new Array[Int](count)
      }
      if (in(at) == Plain) {
        plain(in, at + 1, count, starts, lengths)
      } else {
        val distinct = Platform.getInt(in, (Platform.BYTE_ARRAY_OFFSET + at + 1).toLong)
        val codesAt = plain(in, at + 6, distinct, entryStarts, entryLengths)
        val end = Words.decode(in, codesAt, count, words)
        var i = 0
        while (i < count) {
          val code = words(i).toInt
          starts(i) = entryStarts(code)
          lengths(i) = entryLengths(code)
          i += 1
        }
        end
      }
    }

    private def plain(
        in: Array[Byte],
        at: Int,
        count: Int,
        starts: Array[Int],
        lengths: Array[Int]): Int = {
      val sizeAt = Words.decode(in, at, count, words)
      var position = sizeAt + 4
      var i = 0
      while (i < count) {
        val length = words(i).toInt
        starts(i) = position
        lengths(i) = length
        position += length
        i += 1
      }
      position
    }
  }
}

/** The strings that codes of a flush stand for: dictionaries of several row groups in a row. */
private final class StringDictionary {
  val bytes = new Bytes(1 << 12)
  private[this] var starts = new Array[Int](1 << 8)
  var size = 0
  var longest = 0

  def add(value: Array[Byte]): Unit = {
    if (size + 1 == starts.length) starts = java.util.Arrays.copyOf(starts, 2 * starts.length)
    bytes.put(value, 0, value.length)
    size += 1
    starts(size) = bytes.size
    longest = math.max(longest, value.length)
  }

  def start(code: Int): Int = starts(code)
  def length(code: Int): Int = starts(code + 1) - starts(code)
}
