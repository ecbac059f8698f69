package io.github.skewext.shuffle

import scala.util.Random

import org.apache.spark.SparkFunSuite
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** Rows that go to batches, and to blocks: the rows that are read have the same bytes. */
class RowBatchesSuite extends SparkFunSuite {

  private val kinds: Seq[(DataType, Random => Any)] = Seq(
    BooleanType -> (_.nextBoolean()),
    ByteType -> (_.nextInt().toByte),
    ShortType -> (_.nextInt().toShort),
    IntegerType -> (_.nextInt()),
    DateType -> (_.nextInt(20000)),
    LongType -> (_.nextLong()),
    TimestampType -> (_.nextLong()),
    FloatType -> (r => java.lang.Float.intBitsToFloat(r.nextInt())),
    DoubleType -> (r => java.lang.Double.longBitsToDouble(r.nextLong())),
    DecimalType(9, 2) -> (r => Decimal(r.nextInt(1000000).toLong - 500000, 9, 2)),
    DecimalType(18, 0) -> (r => Decimal(r.nextLong() / 10, 18, 0)),
    StringType -> (r => UTF8String.fromString("x" * r.nextInt(30) + "\u00e9")),
    BinaryType -> { r =>
      val bytes = new Array[Byte](r.nextInt(20))
      r.nextBytes(bytes)
      bytes
    })

  private def rows(columns: Seq[(DataType, Random => Any)], n: Int, nulls: Int): Seq[UnsafeRow] = {
    val random = new Random(n)
    val projection = UnsafeProjection.create(columns.map(_._1).toArray)
    Seq.tabulate(n) { i =>
      val values = columns.map { case (_, value) =>
        // Whole stretches of rows have no null, and their batches either.
        if (nulls > 0 && i / 700 % 2 == 0 && random.nextInt(nulls) == 0) null else value(random)
      }
      projection(InternalRow(values: _*)).copy()
    }
  }

  /** As generated code passes rows: `hasNext` overwrites the one before. */
  private def reused(rows: Seq[UnsafeRow], numFields: Int): Iterator[InternalRow] = {
    val from = rows.iterator
    var buffer = new Array[Byte](16)
    val row = new UnsafeRow(numFields)
    new Iterator[InternalRow] {
      override def hasNext: Boolean = {
        java.util.Arrays.fill(buffer, -1: Byte)
        from.hasNext
      }
      override def next(): InternalRow = {
        val bytes = from.next().getBytes
        if (buffer.length < bytes.length) buffer = new Array[Byte](bytes.length)
        System.arraycopy(bytes, 0, buffer, 0, bytes.length)
        row.pointTo(buffer, bytes.length)
        row
      }
    }
  }

  /** Each row that is read from the blocks, in the order of their one partition. */
  private def read(types: Seq[DataType], rows: Iterator[InternalRow]): (Seq[UnsafeRow], Long) = {
    val runs = new PartitionedColumnBuffer(types, 1, BatchPartitioner.byRow(_ => 0))
    new RowBatches(rows, types).foreach { batch =>
      // In two steps, as a task does that has filled its memory.
      val half = batch.numRows / 2
      if (half > 0) runs.add(batch, 0, half)
      runs.add(batch, half, batch.numRows)
    }
    val blocks = new ColumnBlockRows(types)
    val found = runs
      .drain()
      .flatMap { case (_, _, block) =>
        val bytes = block.array.slice(4, block.size) ++ new Array[Byte](BitPacking.Slack)
        blocks.open(bytes, block.size - 4)
        val some = Seq.newBuilder[UnsafeRow]
        while (blocks.hasNext) {
          blocks.next()
          some += blocks.row.copy()
        }
        some.result()
      }
      .toList
    (found, runs.rowBytes)
  }

  private def check(columns: Seq[(DataType, Random => Any)], n: Int, nulls: Int): Unit = {
    val expected = rows(columns, n, nulls)
    val (found, bytes) = read(columns.map(_._1), reused(expected, columns.size))
    assert(found === expected)
    assert(bytes === expected.map(_.getSizeInBytes.toLong).sum)
  }

  for (nulls <- Seq(0, 2, 50)) {
    test(s"values of every type, one in $nulls null") {
      check(kinds, 5000, nulls)
    }
  }

  test("more columns than one word has bits for nulls") {
    check(Seq.fill(11)(kinds).flatten, 300, 7)
  }

  test("rows larger than a page, alone and among small ones") {
    val lengths = Seq(10, 70000, 5, 65000, 65000, 1 << 20, 1 << 20, 0, 3)
    val projection = UnsafeProjection.create(Array[DataType](LongType, StringType))
    val expected = lengths.zipWithIndex.map { case (length, i) =>
      projection(InternalRow(i.toLong, UTF8String.fromString("y" * length))).copy()
    }
    assert(read(Seq(LongType, StringType), reused(expected, 2))._1 === expected)
  }

  test("no rows") {
    assert(!new RowBatches(Iterator.empty, Seq(LongType)).hasNext)
  }

  test("rows of batches, for partition ids that are computed by row") {
    val columns = kinds.take(4)
    val expected = rows(columns, 600, 3)
    val found = new RowBatches(reused(expected, columns.size), columns.map(_._1)).flatMap { batch =>
      Seq.tabulate(batch.numRows) { i =>
        for (c <- columns.indices) {
          assert(batch.column(c).isNullAt(i) === batch.getRow(i).isNullAt(c))
        }
        batch.getRow(i).asInstanceOf[UnsafeRow].copy()
      }
    }
    assert(found.toList === expected)
  }
}
