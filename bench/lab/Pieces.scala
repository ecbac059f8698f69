package org.apache.spark.sql.skewext.lab

import net.jpountz.lz4.LZ4Factory

import org.apache.spark.unsafe.Platform

/**
 * The pieces of one column, a piece being its run in one block: compressed or not, which a sample
 * says for the column every now and then.
 */
private final class Pieces(compresses: Boolean) {
  private[this] val lz4 = LZ4Factory.fastestInstance.fastCompressor
  private[this] var spare = new Array[Byte](0)
  private[this] var shrinks = false
  private[this] var untilSample = 0

  /** To be called after a piece's bytes, which begin with a byte for this, are in `out`. */
  def finish(out: Bytes, at: Int): Unit = {
    val size = out.size - at - 1
    if (compresses && size >= Pieces.Least) {
      if (untilSample == 0) {
        shrinks = compress(out, at, math.min(size, Pieces.Sample)) < Pieces.Worthwhile
        untilSample = Pieces.Between
      }
      untilSample -= 1
      if (shrinks) {
        compress(out, at, size)
        if (compressed + 8 < size) {
          out.array(at) = 1
          out.size = at + 1
          out.putInt(size)
          out.putInt(compressed)
          out.put(spare, 0, compressed)
        }
      }
    }
  }

  private[this] var compressed = 0

  private def compress(out: Bytes, at: Int, size: Int): Double = {
    val most = lz4.maxCompressedLength(size)
    if (spare.length < most) spare = new Array[Byte](most)
    compressed = lz4.compress(out.array, at + 1, size, spare, 0, most)
    compressed.toDouble / size
  }
}

private object Pieces {
  private val Least = 256
  private val Sample = 4096
  private val Worthwhile = 0.9
  private val Between = 64

  /** Opens pieces; `bytes` from `at` on is what the piece was before it was compressed. */
  final class Opened {
    private[this] val lz4 = LZ4Factory.fastestInstance.fastDecompressor
    private[this] var spare = new Array[Byte](0)
    var bytes: Array[Byte] = spare
    var at = 0

    /** Where the next piece begins, or -1 if that is where this one's decoding ends. */
    def open(in: Array[Byte], from: Int): Int =
      if (in(from) == 0) {
        bytes = in
        at = from + 1
        -1
      } else {
        val base = Platform.BYTE_ARRAY_OFFSET.toLong + from
        val size = Platform.getInt(in, base + 1)
        val compressed = Platform.getInt(in, base + 5)
        // Words are read whole, and the last one's rest is behind the piece.
        if (spare.length < size + 8) spare = new Array[Byte](2 * size + 8)
        lz4.decompress(in, from + 9, spare, 0, size)
        bytes = spare
        at = 0
        from + 9 + compressed
      }
  }
}
