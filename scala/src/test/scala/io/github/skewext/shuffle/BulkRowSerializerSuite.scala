package io.github.skewext.shuffle

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, EOFException, IOException, InputStream}

import scala.util.Random

import org.apache.spark.SparkFunSuite
import org.apache.spark.serializer.Serializer
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.execution.UnsafeRowSerializer
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.types.{DataType, LongType, StringType}
import org.apache.spark.unsafe.types.UTF8String

/** The bytes are Spark's, in both directions. */
class BulkRowSerializerSuite extends SparkFunSuite {

  private val types: Array[DataType] = Array(LongType, StringType)

  private def row(number: Long, length: Int): UnsafeRow =
    UnsafeProjection.create(types)(InternalRow(number, UTF8String.fromString("x" * length))).copy()

  private def rows(lengths: Seq[Int]): Seq[UnsafeRow] =
    lengths.zipWithIndex.map { case (length, i) => row(i.toLong, length) }

  private def metric = new SQLMetric("size")

  private def bulk(dataSize: SQLMetric = metric): Serializer = new BulkRowSerializer(2, dataSize)
  private def sparks: Serializer = new UnsafeRowSerializer(2)

  private def write(
      serializer: Serializer,
      rows: Seq[UnsafeRow],
      flushEvery: Int = 0): Array[Byte] = {
    val bytes = new ByteArrayOutputStream
    val stream = serializer.newInstance().serializeStream(bytes)
    rows.zipWithIndex.foreach { case (row, i) =>
      stream.writeKey(i)
      stream.writeValue(row)
      if (flushEvery > 0 && i % flushEvery == 0) stream.flush()
    }
    stream.close()
    // As a writer does that has failed.
    stream.close()
    bytes.toByteArray
  }

  private def read(serializer: Serializer, in: InputStream): Seq[UnsafeRow] =
    serializer
      .newInstance()
      .deserializeStream(in)
      .asKeyValueIterator
      .map(_._2.asInstanceOf[UnsafeRow].copy())
      .toList

  /** Gives fewer bytes than it is asked for, as decompressing streams do. */
  private def inPieces(bytes: Array[Byte], most: Int): InputStream =
    new ByteArrayInputStream(bytes) {
      override def read(to: Array[Byte], offset: Int, length: Int): Int =
        super.read(to, offset, math.min(length, most))
    }

  private val random = new Random(5)

  private val cases: Seq[(String, Seq[Int])] = Seq(
    "no row" -> Nil,
    "one row" -> Seq(3),
    "many small rows" -> Seq.fill(6000)(random.nextInt(40)),
    "rows around the size of a buffer" -> (4060 to 4110),
    "rows around the size of the reader's first buffer" -> (980 to 1040),
    "rows around the size of the reader's buffer" -> (65490 to 65550),
    "a row larger than any buffer among small ones" -> Seq(1, 1 << 20, 2, 300000, 3))

  for ((name, lengths) <- cases) {
    test(s"$name: the same bytes and the same rows as Spark's") {
      val expected = rows(lengths)
      val dataSize = metric
      val bytes = write(bulk(dataSize), expected)
      assert(bytes.sameElements(write(sparks, expected)))
      assert(dataSize.value === expected.map(_.getSizeInBytes.toLong).sum)
      assert(bytes.sameElements(write(bulk(), expected, flushEvery = 3)))
      assert(read(sparks, new ByteArrayInputStream(bytes)) === expected)
      for (most <- Seq(Int.MaxValue, 32768, 1000, 7) if most > 100 || bytes.length < 100000) {
        assert(read(bulk(), inPieces(bytes, most)) === expected)
      }
    }
  }

  test("a row is valid until the next one is asked for, whatever hasNext reads") {
    val expected = rows(Seq.fill(5000)(random.nextInt(100)))
    val read = bulk()
      .newInstance()
      .deserializeStream(inPieces(write(bulk(), expected), 50))
      .asKeyValueIterator
    expected.foreach { row =>
      val actual = read.next()._2
      read.hasNext
      assert(actual === row)
    }
    assert(!read.hasNext)
    assert(!read.hasNext)
    intercept[NoSuchElementException](read.next())
  }

  test("the stream is closed at its end") {
    var closed = false
    val in = new ByteArrayInputStream(write(bulk(), rows(Seq(1, 2)))) {
      override def close(): Unit = closed = true
    }
    assert(read(bulk(), in).size === 2)
    assert(closed)
  }

  test("bytes that end early, or are no rows, are an error and not fewer rows") {
    val bytes = write(bulk(), rows(Seq(10, 20, 30)))
    for (lost <- Seq(1, 5, bytes.length - 2)) {
      intercept[EOFException](read(bulk(), new ByteArrayInputStream(bytes.dropRight(lost))))
    }
    intercept[IOException](read(bulk(), new ByteArrayInputStream(Array.fill[Byte](8)(-1))))
  }

  test("rows without columns") {
    val empty = UnsafeProjection.create(Array.empty[DataType])(InternalRow()).copy()
    val serializer = new BulkRowSerializer(0, metric)
    val bytes = write(serializer, Seq.fill(3)(empty))
    assert(bytes.sameElements(write(new UnsafeRowSerializer(0), Seq.fill(3)(empty))))
    assert(read(serializer, new ByteArrayInputStream(bytes)).size === 3)
  }
}
