package org.apache.spark.sql.skewext

import java.io.{ByteArrayInputStream, DataInputStream, EOFException, FilterInputStream, InputStream, SequenceInputStream}
import java.util.Arrays

import io.github.skewext.skew.RowRange

import org.apache.spark.SparkEnv
import org.apache.spark.internal.config.{IO_COMPRESSION_CODEC, SHUFFLE_COMPRESS}
import org.apache.spark.io.LZ4CompressionCodec
import org.apache.spark.storage.BlockId

/**
 * Reads a part of a shuffle block. What is before it is not decompressed, if the codec is LZ4, as it
 * is by default: its blocks come in frames of 32 KB, and each says how long it is, with and without
 * compression. With another codec it is decompressed and dropped.
 */
private object BlockRanges {

  /** In place of `SerializerManager.wrapStream`: the bytes of the range, decompressed. */
  def open(range: RowRange)(block: BlockId, raw: InputStream): InputStream = {
    val manager = SparkEnv.get.serializerManager
    val in = manager.wrapForEncryption(raw)
    val (framed, skipped) = if (isLz4) Lz4Frames.skip(in, range.from) else (in, 0L)
    val bytes = manager.wrapForCompression(block, framed)
    skipFully(bytes, range.from - skipped)
    new Limited(bytes, range.until - range.from)
  }

  private def isLz4: Boolean = {
    val conf = SparkEnv.get.conf
    val codec = conf.get(IO_COMPRESSION_CODEC)
    conf.get(SHUFFLE_COMPRESS) &&
    (codec.equalsIgnoreCase("lz4") || codec == classOf[LZ4CompressionCodec].getName)
  }

  def skipFully(in: InputStream, bytes: Long): Unit = {
    var left = bytes
    while (left > 0) {
      val skipped = in.skip(left)
      if (skipped > 0) {
        left -= skipped
      } else {
        // Nothing skipped says nothing about the end.
        if (in.read() < 0) throw new EOFException
        left -= 1
      }
    }
  }

  /** Ends after so many bytes; it is an error if the stream ends before. */
  private final class Limited(in: InputStream, private[this] var left: Long)
      extends FilterInputStream(in) {

    override def read(): Int = if (left == 0) {
      -1
    } else {
      val byte = in.read()
      if (byte < 0) throw new EOFException
      left -= 1
      byte
    }

    override def read(to: Array[Byte], offset: Int, length: Int): Int = if (left == 0) {
      -1
    } else {
      val read = in.read(to, offset, math.min(length.toLong, left).toInt)
      if (read < 0) throw new EOFException
      left -= read
      read
    }

    override def skip(bytes: Long): Long = {
      val skipped = in.skip(math.min(bytes, left))
      left -= skipped
      skipped
    }

    override def available(): Int = math.min(in.available().toLong, left).toInt

    override def markSupported(): Boolean = false
  }
}

/** The frames that lz4-java's streams are made of: a header of 21 bytes, and what was compressed. */
private object Lz4Frames {
  private val Magic = "LZ4Block".getBytes("US-ASCII")
  private val CompressedLength = Magic.length + 1
  private val OriginalLength = CompressedLength + 4
  private val HeaderLength = OriginalLength + 8

  /**
   * Leaves out the frames that end before a byte of what was compressed, or at it.
   *
   * @return what is left of the stream, and how many bytes of what was compressed were left out
   */
  def skip(in: InputStream, until: Long): (InputStream, Long) = {
    val header = new Array[Byte](HeaderLength)
    var skipped = 0L
    while (skipped < until) {
      new DataInputStream(in).readFully(header)
      // Not a frame: whoever decompresses says so better.
      if (!Arrays.equals(Arrays.copyOf(header, Magic.length), Magic))
        return (rest(header, in), skipped)
      val length = littleEndian(header, OriginalLength)
      if (skipped + length > until) return (rest(header, in), skipped)
      // One without bytes ends a stream; another one follows.
      BlockRanges.skipFully(in, littleEndian(header, CompressedLength))
      skipped += length
    }
    (in, skipped)
  }

  private def rest(header: Array[Byte], in: InputStream): InputStream =
    new SequenceInputStream(new ByteArrayInputStream(header), in)

  private def littleEndian(bytes: Array[Byte], at: Int): Int =
    (bytes(at) & 0xff) | (bytes(at + 1) & 0xff) << 8 | (bytes(at + 2) & 0xff) << 16 |
      (bytes(at + 3) & 0xff) << 24
}
