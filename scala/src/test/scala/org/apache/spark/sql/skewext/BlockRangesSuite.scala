package org.apache.spark.sql.skewext

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, EOFException, InputStream}

import scala.util.Random

import io.github.skewext.skew.{RowRange, RowStarts}

import org.apache.spark.io.CompressionCodec
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection
import org.apache.spark.sql.types.{DataType, LongType, StringType}
import org.apache.spark.storage.ShuffleBlockId
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.{LocalSparkContext, SparkConf, SparkContext, SparkEnv, SparkFunSuite}

/** Parts of blocks are what the blocks have there. */
class BlockRangesSuite extends SparkFunSuite with LocalSparkContext {

  private val random = new Random(7)

  // Some of it can be compressed, and some cannot.
  private val bytes: Array[Byte] =
    Array.tabulate(300000)(i => if (i % 90000 < 40000) (i % 50).toByte else random.nextInt().toByte)

  private def all(in: InputStream): Seq[Byte] =
    Iterator.continually(in.read()).takeWhile(_ >= 0).map(_.toByte).toVector

  /** Several streams, one behind the other, as spilled partitions are merged. */
  private def compressed(codec: CompressionCodec, lengths: Int*): Array[Byte] = {
    val out = new ByteArrayOutputStream
    var from = 0
    for (length <- lengths :+ (bytes.length - lengths.sum)) {
      val stream = codec.compressedOutputStream(out)
      stream.write(bytes, from, length)
      stream.close()
      from += length
    }
    out.toByteArray
  }

  test("frames of LZ4 are skipped, up to the one with a byte") {
    val conf = new SparkConf(false)
    val codec = CompressionCodec.createCodec(conf, "lz4")
    for (lengths <- Seq(Seq(), Seq(0), Seq(1), Seq(32768, 32768), Seq(100000, 0, 7, 50000))) {
      val block = compressed(codec, lengths: _*)
      for (from <- Seq(0, 1, 32767, 32768, 32769, 65536, 100000, 100007, 250000, 299999, 300000)) {
        val (rest, skipped) = Lz4Frames.skip(new ByteArrayInputStream(block), from.toLong)
        assert(skipped <= from && from - skipped <= 32768, s"$lengths $from")
        assert(all(codec.compressedInputStream(rest)) === bytes.drop(skipped.toInt).toSeq)
      }
      intercept[EOFException](Lz4Frames.skip(new ByteArrayInputStream(block), 300001L))
    }
    val plain = new ByteArrayInputStream(bytes)
    val (rest, skipped) = Lz4Frames.skip(plain, 5L)
    assert(skipped === 0 && all(rest) === bytes.toSeq)
  }

  for ((what, conf) <- Seq(
      "lz4" -> ("spark.io.compression.codec" -> "lz4"),
      "zstd" -> ("spark.io.compression.codec" -> "zstd"),
      "no compression" -> ("spark.shuffle.compress" -> "false"))) {
    test(s"a range of a block, $what") {
      sc = new SparkContext(
        "local[1]",
        "test",
        new SparkConf(false).set("spark.ui.enabled", "false").set(conf._1, conf._2))
      val id = ShuffleBlockId(0, 0, 0)
      val out = new ByteArrayOutputStream
      val stream = SparkEnv.get.serializerManager.wrapStream(id, out)
      stream.write(bytes)
      stream.close()
      def open(from: Long, until: Long) =
        BlockRanges.open(RowRange(from, until))(id, new ByteArrayInputStream(out.toByteArray))
      for ((from, until) <- Seq(
          (0, 0),
          (0, 300000),
          (70000, 70001),
          (32768, 200000),
          (300000, 300000)))
        assert(all(open(from, until)) === bytes.slice(from, until).toSeq, s"$from until $until")
      intercept[EOFException](all(open(200000, 300001)))
      intercept[EOFException](open(300001, 300001))
    }
  }

  test("ranges begin and end with rows, and together they are the block") {
    val types: Array[DataType] = Array(LongType, StringType)
    val project = UnsafeProjection.create(types)
    for (lengths <- Seq(Seq(), Seq(5), Seq.fill(30000)(random.nextInt(200)), Seq(3, 4000000, 5))) {
      def rows = lengths.iterator.zipWithIndex.map { case (length, i) =>
        project(InternalRow(i.toLong, UTF8String.fromString("x" * length)))
      }
      val ends = rows.map(4L + _.getSizeInBytes).scanLeft(0L)(_ + _).toSet
      val finder = new RowStarts.Finder(rows)
      // Whoever reads the rows need not read all of them.
      finder.take(lengths.size / 2).foreach(_ => ())
      val starts = finder.result()
      assert(starts.end === ends.max)
      for (shares <- Seq(1, 2, 7)) {
        val ranges = (0 until shares).map(starts.range(_, shares))
        assert(ranges.size === shares)
        assert(ranges.head.from === 0 && ranges.last.until === starts.end)
        assert(ranges.zip(ranges.drop(1)).forall { case (a, b) => a.until == b.from })
        assert(ranges.forall(r => r.from <= r.until && ends(r.from) && ends(r.until)))
      }
    }
  }
}
