package org.apache.spark.sql.skewext.lab

import java.io.{BufferedInputStream, File, FileInputStream, FileOutputStream, InputStream}
import java.nio.channels.FileChannel
import java.nio.file.StandardOpenOption.{CREATE, READ, TRUNCATE_EXISTING, WRITE}

import scala.collection.mutable.ArrayBuffer

/**
 * One file with all partitions' blocks in their order. Of several flushes each is a file of its own
 * first, and they are put together by the piece.
 */
private final class BlockFile(file: File, numPartitions: Int) {
  private[this] val flushes = ArrayBuffer.empty[(File, Array[Long])]
  private[this] val buffer = new Bytes(1 << 16)

  def write(scatter: Scatter): Unit = {
    val part = new File(s"${file.getPath}.${flushes.size}")
    val ends = new Array[Long](numPartitions + 1)
    val out = new FileOutputStream(part)
    scatter.finish()
    var written = 0L
    var p = 0
    while (p < numPartitions) {
      if (scatter.rows(p) > 0) scatter.block(p, buffer)
      ends(p + 1) = written + buffer.size
      if (buffer.size >= (1 << 16) - (1 << 12) || p == numPartitions - 1) {
        out.write(buffer.array, 0, buffer.size)
        written += buffer.size
        buffer.size = 0
      }
      p += 1
    }
    out.close()
    scatter.clear()
    flushes += ((part, ends))
  }

  /** Bytes of the file. */
  def finish(): Long = {
    if (flushes.size == 1) flushes.head._1.renameTo(file)
    else {
      val to = FileChannel.open(file.toPath, CREATE, WRITE, TRUNCATE_EXISTING)
      val parts = flushes.map { case (part, ends) => (FileChannel.open(part.toPath, READ), ends) }
      for (p <- 0 until numPartitions; (part, ends) <- parts) {
        val size = ends(p + 1) - ends(p)
        var done = 0L
        while (done < size) done += part.transferTo(ends(p) + done, size - done, to)
      }
      to.close()
      parts.foreach(_._1.close())
      flushes.foreach(_._1.delete())
    }
    file.length
  }

  /** Of all flushes together. */
  private def sizeOf(partition: Int): Long =
    flushes.map { case (_, ends) => ends(partition + 1) - ends(partition) }.sum

  def open(): InputStream = new BufferedInputStream(new FileInputStream(file), 1 << 16)

  def open(partition: Int): InputStream = {
    val in = new FileInputStream(file)
    in.getChannel.position((0 until partition).map(sizeOf).sum)
    val bytes = new Array[Byte](sizeOf(partition).toInt)
    var read = 0
    while (read < bytes.length) read += in.read(bytes, read, bytes.length - read)
    in.close()
    new java.io.ByteArrayInputStream(bytes)
  }
}
