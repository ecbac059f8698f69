package org.apache.spark.sql.skewext

import java.io.OutputStream

import org.apache.spark.SparkEnv
import org.apache.spark.internal.config.SHUFFLE_COMPRESS
import org.apache.spark.io.CompressionCodec

/**
 * The codec with which Spark compresses shuffle files. Lives here because it is `private[spark]`.
 */
object ShuffleCodec {

  /** The compressed size of the first `length` bytes of an array. */
  def compressed(bytes: Array[Byte], length: Int): Int = {
    val conf = SparkEnv.get.conf
    if (!conf.get(SHUFFLE_COMPRESS)) {
      length
    } else {
      val counted = new CountedBytes
      val out = CompressionCodec.createCodec(conf).compressedOutputStream(counted)
      out.write(bytes, 0, length)
      out.close()
      counted.count
    }
  }

  private final class CountedBytes extends OutputStream {
    var count = 0
    override def write(byte: Int): Unit = count += 1
    override def write(bytes: Array[Byte], from: Int, length: Int): Unit = count += length
  }
}
