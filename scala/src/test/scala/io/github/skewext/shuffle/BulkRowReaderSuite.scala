package io.github.skewext.shuffle

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, EOFException, IOException, InputStream}

import scala.util.Random

import org.apache.spark.SparkFunSuite
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.execution.UnsafeRowSerializer
import org.apache.spark.sql.types.{DataType, LongType, StringType}
import org.apache.spark.unsafe.types.UTF8String

/** The rows that Spark's serializer wrote. */
class BulkRowReaderSuite extends SparkFunSuite {

  private val types: Array[DataType] = Array(LongType, StringType)

  private def row(number: Long, length: Int): UnsafeRow =
    UnsafeProjection.create(types)(InternalRow(number, UTF8String.fromString("x" * length))).copy()

  private def rows(lengths: Seq[Int]): Seq[UnsafeRow] =
    lengths.zipWithIndex.map { case (length, i) => row(i.toLong, length) }

  private def write(rows: Seq[UnsafeRow], numFields: Int = 2): Array[Byte] = {
    val bytes = new ByteArrayOutputStream
    val stream = new UnsafeRowSerializer(numFields).newInstance().serializeStream(bytes)
    rows.foreach(row => stream.writeValue(row))
    stream.close()
    bytes.toByteArray
  }

  private def read(in: InputStream, numFields: Int = 2): Iterator[UnsafeRow] = {
    val reader = new BulkRowReader(in, new UnsafeRow(numFields), BulkRowReader.newBuffer)
    new Iterator[UnsafeRow] {
      override def hasNext: Boolean = reader.hasNext
      override def next(): UnsafeRow = {
        reader.next()
        reader.row
      }
    }
  }

  private def all(in: InputStream): Seq[UnsafeRow] = read(in).map(_.copy()).toList

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
    "rows around the size of the buffer" -> (65490 to 65550),
    "a row larger than the buffer among small ones" -> Seq(1, 1 << 20, 2, 300000, 3))

  for ((name, lengths) <- cases) {
    test(s"$name: the rows that Spark wrote") {
      val expected = rows(lengths)
      val bytes = write(expected)
      for (most <- Seq(Int.MaxValue, 32768, 1000, 7) if most > 100 || bytes.length < 100000) {
        assert(all(inPieces(bytes, most)) === expected)
      }
    }
  }

  test("a row is valid until the next one is requested, whatever hasNext reads") {
    val expected = rows(Seq.fill(5000)(random.nextInt(100)))
    val actual = read(inPieces(write(expected), 50))
    expected.foreach { row =>
      val next = actual.next()
      actual.hasNext
      assert(next === row)
    }
    assert(!actual.hasNext)
    assert(!actual.hasNext)
    intercept[NoSuchElementException](actual.next())
  }

  test("the stream is closed at its end") {
    var closed = false
    val in = new ByteArrayInputStream(write(rows(Seq(1, 2)))) {
      override def close(): Unit = closed = true
    }
    assert(all(in).size === 2)
    assert(closed)
  }

  test("bytes that end early, or are no rows, are an error and not fewer rows") {
    val bytes = write(rows(Seq(10, 20, 30)))
    for (lost <- Seq(1, 5, bytes.length - 2)) {
      intercept[EOFException](all(new ByteArrayInputStream(bytes.dropRight(lost))))
    }
    intercept[IOException](all(new ByteArrayInputStream(Array.fill[Byte](8)(-1))))
  }

  test("rows without columns") {
    val empty = UnsafeProjection.create(Array.empty[DataType])(InternalRow()).copy()
    assert(read(new ByteArrayInputStream(write(Seq.fill(3)(empty), 0)), 0).size === 3)
  }
}
