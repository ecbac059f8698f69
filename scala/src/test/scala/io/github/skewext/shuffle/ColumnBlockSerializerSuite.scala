package io.github.skewext.shuffle

import java.io.{ByteArrayInputStream, IOException, InputStream}

import scala.collection.mutable
import scala.util.{Failure, Random, Success, Try}

import io.github.skewext.nullkeys.SpreadNulls

import org.apache.spark.SparkFunSuite
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution.vectorized.{OnHeapColumnVector, WritableColumnVector}
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

/** Batches that go to blocks and come out as the rows that they had, byte for byte. */
class ColumnBlockSerializerSuite extends SparkFunSuite {

  private val allTypes: Seq[DataType] = Seq(
    BooleanType,
    ByteType,
    ShortType,
    IntegerType,
    DateType,
    LongType,
    TimestampType,
    TimestampNTZType,
    YearMonthIntervalType(),
    DayTimeIntervalType(),
    FloatType,
    DoubleType,
    StringType,
    BinaryType,
    DecimalType(9, 2),
    DecimalType(18, 0))

  private val Digits = "0123456789abcdef".getBytes

  private type Value = Random => Any

  /** Values of each size that a type has, its ends among them; strings of any bytes or of few ones. */
  private def valueOf(dataType: DataType, digits: Boolean): Value = {
    def long(r: Random): Long = r.nextInt(8) match {
      case 0 => Long.MinValue
      case 1 => Long.MaxValue
      case _ => r.nextLong() >> r.nextInt(64)
    }
    def text(r: Random): Array[Byte] = {
      val bytes = new Array[Byte](if (r.nextInt(50) == 0) 1000 + r.nextInt(1000) else r.nextInt(40))
      r.nextBytes(bytes)
      if (digits) bytes.indices.foreach(i => bytes(i) = Digits(bytes(i) & 15))
      bytes
    }
    dataType match {
      case BooleanType => _.nextBoolean()
      case ByteType => long(_).toByte
      case ShortType => long(_).toShort
      case IntegerType | DateType | _: YearMonthIntervalType => long(_).toInt
      case FloatType => r => java.lang.Float.intBitsToFloat(r.nextInt())
      case DoubleType => r => java.lang.Double.longBitsToDouble(r.nextLong())
      case StringType => r => UTF8String.fromBytes(text(r))
      case BinaryType => text(_)
      case t: DecimalType =>
        val limit = BigDecimal(10).pow(t.precision).toLong
        r => Decimal(long(r) % limit, t.precision, t.scale)
      case _ => long(_)
    }
  }

  private def put(vector: WritableColumnVector, i: Int, value: Any): Unit = value match {
    case null => vector.putNull(i)
    case v: Boolean => vector.putBoolean(i, v)
    case v: Byte => vector.putByte(i, v)
    case v: Short => vector.putShort(i, v)
    case v: Int => vector.putInt(i, v)
    case v: Long => vector.putLong(i, v)
    case v: Float => vector.putFloat(i, v)
    case v: Double => vector.putDouble(i, v)
    case v: UTF8String => vector.putByteArray(i, v.getBytes)
    case v: Array[Byte] => vector.putByteArray(i, v)
    case v: Decimal => vector.putDecimal(i, v, v.precision)
  }

  private def bytesOf(value: Any): Array[Byte] = value match {
    case v: UTF8String => v.getBytes
    case v: Array[Byte] => v
    case null => null
  }

  private def batch(types: Seq[DataType], rows: Seq[Seq[Any]]): ColumnarBatch = {
    val vectors = types.zipWithIndex.map { case (dataType, c) =>
      val vector = new OnHeapColumnVector(math.max(1, rows.size), dataType)
      val numbered = rows.zipWithIndex
      if (ColumnCell.kindOf(dataType).exists(ColumnCell.isBytes) && rows.size % 2 == 1) {
        DictionaryVectors.fill(vector, rows.map(row => bytesOf(row(c))))
      } else {
        // Strings are not always one behind the other.
        val order = if (rows.size % 3 == 0) numbered.reverse else numbered
        order.foreach { case (row, i) => put(vector, i, row(c)) }
      }
      vector
    }
    new ColumnarBatch(vectors.toArray, rows.size)
  }

  /** The first column, which is never null, says which partition a row goes to. */
  private def blocksOf(
      types: Seq[DataType],
      batches: Seq[Seq[Seq[Any]]],
      partitions: Int): Seq[(Int, Array[Byte])] = {
    val runs = new PartitionedColumnBuffer(
      IntegerType +: types,
      partitions,
      BatchPartitioner.byRow(_.getInt(0)))
    drainEach(runs, batches.map(batch(IntegerType +: types, _)))
  }

  /** A flush after every second batch. */
  private def drainEach(
      runs: PartitionedColumnBuffer,
      batches: Seq[ColumnarBatch]): Seq[(Int, Array[Byte])] =
    batches.grouped(2).toSeq.flatMap { some =>
      some.foreach { b =>
        val middle = b.numRows / 3
        runs.add(b, 0, middle)
        runs.add(b, middle, b.numRows)
      }
      runs.drain().map { case (p, _, block) => (p, bytesOf(block)) }.toList
    }

  private def bytesOf(block: ByteBuilder): Array[Byte] = block.array.take(block.size)

  private def blocksIn(types: Seq[DataType], in: InputStream): Iterator[InternalRow] =
    new ColumnBlockSerializer(types)
      .newInstance()
      .deserializeStream(in)
      .asKeyValueIterator
      .map(_._2.asInstanceOf[InternalRow])

  private def columns(blocks: Iterator[InternalRow]): ShuffledColumns =
    new ShuffledColumns(blocks, _ => ())

  /** The rows one by one; the same many at once. */
  private def read(types: Seq[DataType], bytes: Array[Byte], piece: Int = Int.MaxValue) = {
    def in = blocksIn(types, inPieces(bytes, piece))
    val rows = Try(columns(in).map(_.asInstanceOf[UnsafeRow].copy()).toList)
    val atOnce = Try(columnwise(types.size, columns(in)))
    rows match {
      case Success(read) => assert(atOnce.get === read)
      case Failure(_) => assert(atOnce.isFailure)
    }
    rows
  }

  /** As a join takes them: to several pages, which are full of something else. */
  private def columnwise(numFields: Int, rows: ShuffledColumns): Seq[UnsafeRow] = {
    val some = ColumnBlockRows.AtOnce
    val (sizes, page, places) = (new Array[Int](some), new Array[Int](some), new Array[Long](some))
    val read = mutable.ArrayBuffer.empty[UnsafeRow]
    while (rows.hasNext) {
      val block = rows.block
      while (block.hasNext) {
        val count = math.min(some, block.numRows - block.taken)
        block.sizes(block.taken, count, sizes)
        val pages =
          Array.tabulate(2)(p => (0 until count).filter(_ % 2 == p).map(sizes(_)).sum).map { size =>
            Array.fill[Byte](size + 8)(-1)
          }
        val ends = Array(0, 0)
        (0 until count).foreach { i =>
          page(i) = i % 2
          places(i) = (Platform.BYTE_ARRAY_OFFSET + ends(i % 2)).toLong
          ends(i % 2) += sizes(i)
        }
        block.copyTo(block.taken, count, pages.toArray[AnyRef], page, places)
        // Nothing is written behind a row.
        pages.zip(ends).foreach { case (p, end) => assert(p.drop(end).forall(_ == -1)) }
        (0 until count).foreach { i =>
          val row = new UnsafeRow(numFields)
          row.pointTo(pages(i % 2), places(i), sizes(i))
          read += row.copy()
        }
        block.takeUntil(block.taken + count)
      }
    }
    read.toSeq
  }

  private def inPieces(bytes: Array[Byte], most: Int): InputStream =
    new ByteArrayInputStream(bytes) {
      override def read(to: Array[Byte], offset: Int, length: Int): Int =
        super.read(to, offset, math.min(length, most))
    }

  private def check(
      types: Seq[DataType],
      batches: Seq[Seq[Seq[Any]]],
      partitions: Int,
      piece: Int = Int.MaxValue): Unit = {
    val all = IntegerType +: types
    val project = UnsafeProjection.create(all.toArray)
    val blocks = blocksOf(types, batches, partitions)
    for (p <- 0 until partitions) {
      val expected = batches.flatten
        .filter(_.head == p)
        .map(row => project(InternalRow.fromSeq(row)).copy())
      val bytes = blocks.filter(_._1 == p).flatMap(_._2).toArray
      assert(read(all, bytes, piece).get === expected)
    }
  }

  private def random(types: Seq[DataType], rows: Int, partitions: Int, nulls: Int, r: Random) = {
    val values = types.map(valueOf(_, r.nextBoolean()))
    Seq.fill(rows) {
      r.nextInt(partitions) +: values.map(v => if (r.nextInt(100) < nulls) null else v(r))
    }
  }

  for (dataType <- allTypes) test(s"${dataType.catalogString}, with nulls and without") {
    val r = new Random(3)
    for (nulls <- Seq(0, 20, 100)) {
      check(Seq(dataType), Seq.fill(3)(random(Seq(dataType), 300, 4, nulls, r)), 4)
    }
  }

  test("random tables of random types, in batches with and without nulls") {
    for (seed <- 0 until 20) withClue(s"seed $seed: ") {
      val r = new Random(seed)
      val types = Seq.fill(r.nextInt(70))(allTypes(r.nextInt(allTypes.size)))
      val partitions = 1 + r.nextInt(9)
      val batches = Seq.fill(r.nextInt(5)) {
        random(types, r.nextInt(200), partitions, if (r.nextBoolean()) 0 else r.nextInt(101), r)
      }
      check(types, batches, partitions, 1 + r.nextInt(3000))
    }
  }

  test("more rows than a block has, and equal ones, which take no room") {
    val row = Seq[Any](0, 7L, UTF8String.fromString("same"))
    val types = Seq(LongType, StringType)
    val rows = Seq.fill(2 * PartitionedColumnBuffer.BlockRows + 1)(row)
    check(types, Seq(rows), 1)
    val blocks = blocksOf(types, Seq(Seq.fill(PartitionedColumnBuffer.BlockRows)(row)), 1)
    assert(blocks.size === 1 && blocks.head._2.length < 4 * PartitionedColumnBuffer.BlockRows + 100)
  }

  test("words of every width, and such that the difference overflows") {
    val r = new Random(1)
    for (width <- 0 to 64; count <- Seq(1, 2, 63, 64, 65, 1000)) {
      val base = if (width > 60) 0L else r.nextInt(1 << 20) - (1 << 19)
      val values =
        Array.fill(count)(if (width == 0) base else base + (r.nextLong() >>> (64 - width)))
      val out = new ByteBuilder(0)
      out.putByte(9)
      BitPacking.encode(values, 0, count, out)
      val read = new Array[Long](count)
      val bytes = out.array.take(out.size) ++ new Array[Byte](BitPacking.Slack)
      assert(BitPacking.endOf(bytes, 1, out.size, count) === out.size)
      BitPacking.decode(bytes, 1, count, read)
      assert(read.toSeq === values.toSeq)
      if (width <= 56) assert(out.size <= 10 + (count * width + 7) / 8)
    }
  }

  test("few different words are stored once") {
    val r = new Random(2)
    val out = new ByteBuilder(0)
    val different = new DifferentWords
    def encoded(values: Array[Long], from: Int): Int = {
      out.size = 0
      out.putByte(9)
      BitPacking.encode(values, from, values.length, out, different)
      val count = values.length - from
      val read = new Array[Long](count)
      val bytes = out.array.take(out.size) ++ new Array[Byte](BitPacking.Slack)
      assert(BitPacking.endOf(bytes, 1, out.size, count) === out.size)
      BitPacking.decode(bytes, 1, count, read)
      assert(read.toSeq === values.drop(from).toSeq)
      out.size - 1
    }
    def packed(count: Int, bits: Int) = 9 + (count * bits + 7) / 8
    for (width <- Seq(13, 44, 56, 57, 64); count <- Seq(1, 31, 32, 100, 4096);
      of <- Seq(1, 2, 20, 100, 1024, 1025, 5000)) withClue(s"$of of $count, $width bits: ") {
      val words = Array.fill(of)(r.nextLong() >>> (64 - width))
      val values = Array.fill(count + 3)(words(r.nextInt(of)))
      val bits = if (width > 56) 64 else width
      val size = encoded(values, 3)
      assert(size <= packed(count, bits))
      if (count == 4096 && of > 1 && of <= 100 && width > 13) {
        assert(size <= 14 + packed(of, bits) + packed(count, 7))
      }
    }
    // All of them come late, or each is new.
    val late = Array.tabulate(4096)(i => if (i < 3000) i % 20 * 1000003L else i * 1000003L)
    assert(encoded(late, 0) >= packed(4096, 30))
    assert(encoded(Array.tabulate(4096)(_ * 1000003L), 0) <= packed(4096, 32))
    // Blocks with numbers of words that are not there.
    val few = Array.tabulate(100)(i => (i % 3) * 1000003L)
    encoded(few, 0)
    def broken(change: Array[Byte] => Unit): Unit = {
      val bytes = out.array.take(out.size) ++ new Array[Byte](BitPacking.Slack)
      change(bytes)
      intercept[IOException] {
        BitPacking.endOf(bytes, 1, out.size, 100)
        BitPacking.decode(bytes, 1, 100, new Array[Long](100))
      }
    }
    for (count <- Seq(0, 1, 2, 101, -1)) {
      broken(b => Platform.putInt(b, Platform.BYTE_ARRAY_OFFSET + 2, count))
    }
    broken(b => b(out.size - 1) = -1)
  }

  test("strings of few different bytes are packed, where that is less for the codec") {
    def rows(letters: Int, n: Int) = {
      val r = new Random(letters.toLong)
      Seq.fill(n) {
        val text = Array.fill(r.nextInt(19))((33 + r.nextInt(letters)).toByte)
        Seq[Any](0, UTF8String.fromBytes(text))
      }
    }
    def bytes(rows: Seq[Seq[Any]]) = rows.map(_(1).asInstanceOf[UTF8String].numBytes).sum
    val all = Seq[DataType](IntegerType, StringType)
    val project = UnsafeProjection.create(all.toArray)
    def size(rows: Seq[Seq[Any]], compressed: (Array[Byte], Int) => Int): Int = {
      val runs = new PartitionedColumnBuffer(all, 1, BatchPartitioner.byRow(_ => 0), compressed)
      val blocks = drainEach(runs, Seq(batch(all, rows)))
      val expected = rows.map(row => project(InternalRow.fromSeq(row)).copy())
      assert(read(all, blocks.flatMap(_._2).toArray).get === expected)
      blocks.map(_._2.length).sum
    }
    val same: (Array[Byte], Int) => Int = (_, length) => length
    val equal: (Array[Byte], Int) => Int = (_, _) => 7
    for ((letters, bits) <- Seq(1 -> 1, 2 -> 1, 3 -> 2, 16 -> 4, 17 -> 5, 64 -> 6, 65 -> 8)) {
      for (n <- Seq(1, 100, 1001, 9000)) withClue(s"$letters letters, $n rows: ") {
        val some = rows(letters, n)
        val saved = size(some, equal) - size(some, same)
        assert(saved >= 0 && saved <= bytes(some) * (8 - bits) / 8)
        if (n > 1) assert(saved >= bytes(some) * (8 - bits) / 8 - 3 * 70)
      }
    }
    // Others come when some were packed already.
    val late = rows(16, 9000) ++ rows(40, 9000)
    val saved = size(late, equal) - size(late, same)
    assert(saved > 10000 && saved < bytes(late) / 4)
  }

  test("the bytes that rows would have are what Spark counts") {
    val r = new Random(5)
    val rows = random(allTypes, 500, 1, 30, r)
    val types = IntegerType +: allTypes
    val project = UnsafeProjection.create(types.toArray)
    val runs = new PartitionedColumnBuffer(types, 1, BatchPartitioner.byRow(_ => 0))
    runs.add(batch(types, rows), 0, rows.size)
    assert(
      runs.rowBytes === rows.map(r => project(InternalRow.fromSeq(r)).getSizeInBytes.toLong).sum)
  }

  test("rows go where Spark's own exchange sends them, by one key of each type and by several") {
    val r = new Random(7)
    // Zeros and the other numbers that have several forms.
    val floats = Seq(0.0f, -0.0f, Float.NaN, java.lang.Float.intBitsToFloat(0x7fc00001))
    val doubles = Seq(0.0, -0.0, Double.NaN, java.lang.Double.longBitsToDouble(0x7ff8000000000001L))
    val input = allTypes.zipWithIndex.map { case (t, i) => AttributeReference(s"c$i", t)() }
    val rows = random(allTypes, 400, 1, 20, r).map(_.tail).zipWithIndex.map { case (row, i) =>
      allTypes.zip(row).map {
        case (FloatType, _) if i < 4 => floats(i)
        case (DoubleType, _) if i < 4 => doubles(i)
        case (_, value) => value
      }
    }
    val columns = batch(allTypes, rows)
    // Others were appended before, of some that are null.
    val appended = allTypes.indices.map { i =>
      val column = new AppendedColumn(allTypes(i))
      column.append(columns.column(i), 0, rows.size / 2)
      column.append(columns.column(i), 1, rows.size - 1)
      column
    }.toArray
    val project = UnsafeProjection.create(allTypes.toArray)
    val several = Seq(input, input.reverse, input.filter(_.dataType == LongType))
    val computed = Seq(Seq(input.head, BitwiseXor(input(5), Literal(1L))), Seq(Literal(3)))
    val spreading = several.map(keys => keys :+ SpreadNulls(keys, input)) ++
      Seq(Seq(input.last, Literal(0L)), Seq(input(5), Literal(1L)))
    for (keys <- input.map(Seq(_)) ++ several ++ computed ++ spreading; n <- Seq(1, 7, 200)) {
      val partitioning = HashPartitioning(keys, n)
      val found = new Array[Int](rows.size + 1)
      BatchPartitioner.of(partitioning, input).find(columns, 1, rows.size - 1, appended, found, 2)
      val id = UnsafeProjection.create(partitioning.partitionIdExpression :: Nil, input)
      val expected = rows.tail.map(row => id(project(InternalRow.fromSeq(row))).getInt(0))
      assert(found.toSeq === Seq(0, 0) ++ expected, partitioning)
    }
  }

  test("after a flush there is as much room as before") {
    val types = Seq(LongType, StringType)
    val b = batch(types, Seq.fill(5000)(Seq(1L, UTF8String.fromString("twenty-two characters."))))
    val runs = new PartitionedColumnBuffer(types, 3, BatchPartitioner.byRow(_.getLong(0).toInt))
    val sizes = (0 until 3).map { _ =>
      assert(runs.isEmpty && runs.size === 0)
      runs.add(b, 0, 5000)
      val size = runs.size
      runs.drain().foreach(_ => ())
      size
    }
    assert(sizes.distinct.size === 1 && sizes.head > 5000 * 30)
  }

  test("types that only rows support") {
    val others = Seq(
      DecimalType(19, 2),
      ArrayType(LongType),
      MapType(LongType, LongType),
      StructType(Nil),
      CalendarIntervalType)
    assert(others.flatMap(ColumnCell.kindOf) === Nil)
  }

  test("damaged blocks are an error or other values, and never read beyond their bytes") {
    val r = new Random(11)
    val types = Seq(LongType, StringType, IntegerType, BinaryType)
    val all = IntegerType +: types
    val good = blocksOf(types, Seq(random(types, 200, 1, 10, r)), 1).flatMap(_._2).toArray
    val rows = read(all, good).get.size
    val outcomes = (0 until 3000).map { _ =>
      val bytes = good.clone()
      for (_ <- 0 to r.nextInt(3)) bytes(r.nextInt(bytes.length)) = r.nextInt().toByte
      read(all, bytes)
    }
    outcomes.foreach {
      // A value's own bits say nothing of being wrong: that is for Spark's checksums.
      case Success(read) => assert(read.size === rows)
      case Failure(e) => assert(e.isInstanceOf[IOException], e)
    }
    assert(outcomes.exists(_.isFailure) && outcomes.exists(_.isSuccess))
  }

  test("bytes that end early, or are too many, are an error and not fewer rows") {
    val r = new Random(12)
    val types = Seq(LongType, StringType)
    val good = blocksOf(types, Seq(random(types, 50, 1, 10, r)), 1).flatMap(_._2).toArray
    val all = IntegerType +: types
    for (lost <- 1 until good.length) {
      intercept[IOException](read(all, good.dropRight(lost)).get)
    }
    intercept[IOException](read(all, good ++ Array[Byte](1)).get)
  }
}
