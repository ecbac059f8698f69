package io.github.skewext.shuffle

import scala.util.Random

import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.vectorized.{ConstantColumnVector, OnHeapColumnVector}
import org.apache.spark.sql.skewext.{TaskInternals, TestConsumer, TestMemory, TestTask}
import org.apache.spark.sql.test.SharedSparkSession
import org.apache.spark.sql.types.{BinaryType, DataType, IntegerType, LongType, StringType}
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarBatch}
import org.apache.spark.unsafe.types.UTF8String

/** When a map task's rows become blocks. */
class ColumnBlocksSuite extends SharedSparkSession {

  private val numRows = 256

  /** The same text in each row, of which the batch has one copy. */
  private def batchOf(text: UTF8String, numRows: Int = numRows): ColumnarBatch = {
    val texts = new ConstantColumnVector(numRows, StringType)
    texts.setUtf8String(text)
    val numbers = new OnHeapColumnVector(numRows, IntegerType)
    (0 until numRows).foreach(i => numbers.putInt(i, i))
    new ColumnarBatch(Array(numbers, texts), numRows)
  }

  /** How large each block is, and how many rows came. */
  private def blocksOf(
      batches: Iterator[ColumnarBatch],
      textType: DataType = StringType): (Seq[Int], Long) = {
    var rows = 0L
    val sizes = TestTask.run(TestMemory.limited(Long.MaxValue)) { context =>
      val runs =
        new PartitionedColumnBuffer(Seq(IntegerType, textType), 1, BatchPartitioner.byRow(_ => 0))
      new ColumnBlocks(batches, runs, rows += _, new SQLMetric("size"), copies = false, context)
        .map(_._2.size)
        .toList
    }
    // Blocks are records to Spark's writer, which counts them.
    (sizes, rows + sizes.size)
  }

  test("long strings that a batch stores once do not fill the heap") {
    // So many different letters that they are not packed.
    val text = UTF8String.fromBytes(Array.tabulate(1 << 20)(i => (32 + i % 95).toByte))
    val (sizes, rows) = blocksOf(Iterator.fill(2)(batchOf(text)))
    assert(rows === 2 * numRows)
    assert(sizes.map(_.toLong).sum > 2L * numRows * (1 << 20))
    // Rows of this length are written in blocks of a few megabytes, and not of 32.
    assert(sizes.max < (4 << 20) + (2 << 20))
  }

  test("the first rows of a task may have long strings") {
    val text = UTF8String.fromBytes(Array.tabulate(8 << 20)(i => (32 + i % 95).toByte))
    val (sizes, rows) = blocksOf(Iterator(batchOf(text, numRows = 16)))
    assert(rows === 16)
    assert(sizes.max < (4 << 20) + (8 << 20) + 1024)
  }

  test("Spark's writer gets memory for its first page, however little there is") {
    val text = UTF8String.fromBytes(Array.tabulate(1000)(i => (32 + i % 95).toByte))
    for (megabytes <- Seq(1, 3, 16, 90)) TestTask.run(TestMemory.limited(megabytes << 20)) {
      context =>
        val runs =
          new PartitionedColumnBuffer(
            Seq(IntegerType, StringType),
            1,
            BatchPartitioner.byRow(_ => 0))
        val batches = Iterator.fill(megabytes << 2)(batchOf(text))
        val blocks =
          new ColumnBlocks(batches, runs, _ => (), new SQLMetric("size"), copies = false, context)
        val writer = new TestConsumer(context)
        val wanted = math.max(blocks.next()._2.size, TaskInternals.memory(context).pageSizeBytes)
        assert(writer.acquire(wanted) === wanted, s"of $megabytes MB")
        writer.release()
        blocks.foreach(_ => ())
    }
  }

  test("an operator below gets memory for its next batch, and the rows stay in their order") {
    val r = new Random(4)
    for (numPartitions <- Seq(1, 3); isOther <- Seq(false, true)) {
      withClue(s"$numPartitions partitions, another thread asks: $isOther: ") {
        TestTask.run(TestMemory.limited(4 << 20)) { context =>
          val below = new TestConsumer(context)
          var (got, asked) = (0L, 0)
          def ask(): Unit = {
            asked += 1
            got += below.acquire(3 << 20)
            below.release()
          }
          val batches = Iterator.tabulate(200) { i =>
            if (i % 20 == 0 || i == 199) {
              if (isOther) {
                val thread = new Thread(() => ask())
                thread.start()
                thread.join()
              } else {
                ask()
              }
            }
            val numbers = new OnHeapColumnVector(numRows, IntegerType)
            val texts = new OnHeapColumnVector(numRows, StringType)
            (0 until numRows).foreach { j =>
              numbers.putInt(j, i * numRows + j)
              texts.putByteArray(j, Array.fill(r.nextInt(60))((32 + r.nextInt(95)).toByte))
            }
            new ColumnarBatch(Array(numbers, texts), numRows)
          }
          val types = Seq(IntegerType, StringType)
          val runs = new PartitionedColumnBuffer(
            types,
            numPartitions,
            BatchPartitioner.byRow(_.getInt(0) % numPartitions))
          val size = new SQLMetric("size")
          var reported = 0L
          val blocks = new ColumnBlocks(batches, runs, reported += _, size, copies = true, context)
          val read = new ColumnBlockRows(types)
          val rows = blocks.toList.flatMap { product =>
            reported += 1
            val block = product._2
            val bytes = block.array.slice(4, block.size) ++ new Array[Byte](BitPacking.Slack)
            read.open(bytes, block.size - 4)
            Iterator.continually(read).takeWhile(_.hasNext).map { rows =>
              rows.next()
              product._1 -> rows.row.getInt(0)
            }
          }
          assert(rows.size === 200 * numRows && reported === rows.size)
          for ((partition, of) <- rows.groupBy(_._1)) {
            assert(of.map(_._2) === (0 until 200 * numRows).filter(_ % numPartitions == partition))
          }
          // Rows that this thread uses cannot be given up for another one.
          assert((got == asked * (3L << 20)) === !isOther)
          assert((TestTask.spilled(context) > 0) === !isOther)
        }
      }
    }
  }

  test("a writer that spills by itself gets all blocks, and none goes to a file") {
    val text = UTF8String.fromBytes(Array.tabulate(1000)(i => (32 + i % 95).toByte))
    TestTask.run(TestMemory.limited(16 << 20)) { context =>
      val runs =
        new PartitionedColumnBuffer(Seq(IntegerType, StringType), 1, BatchPartitioner.byRow(_ => 0))
      val batches = Iterator.fill(400)(batchOf(text))
      val blocks =
        new ColumnBlocks(batches, runs, _ => (), new SQLMetric("size"), copies = false, context)
      val writer = new TestConsumer(context)
      var (held, spills) = (0L, 0)
      blocks.foreach { case (_, block) =>
        val got = writer.acquire(block.size)
        held += block.size
        if (got < block.size) {
          writer.release()
          spills += 1
          TestTask.noteSpilled(context, held)
          held = block.size
          assert(writer.acquire(held) === held)
        }
      }
      writer.release()
      assert(spills > 3)
      assert(TestTask.spilled(context) === 0)
    }
  }

  private val long = Array.tabulate(1 << 20)(i => (32 + i % 95).toByte)

  private def vectorOf(texts: Seq[Array[Byte]], kind: String): ColumnVector = {
    val vector =
      new OnHeapColumnVector(texts.size, if (kind == "binary") BinaryType else StringType)
    kind match {
      case "dictionary" => DictionaryVectors.fill(vector, texts)
      case "null" =>
        vector.putNull(0)
        texts.tail.zipWithIndex.foreach { case (t, i) => vector.putByteArray(i + 1, t) }
      // Not one behind the other.
      case "reversed" =>
        texts.zipWithIndex.reverse.foreach { case (t, i) => vector.putByteArray(i, t) }
      case "constant" =>
        val constant = new ConstantColumnVector(texts.size, StringType)
        constant.setUtf8String(UTF8String.fromBytes(texts.head))
        return constant
      case _ => texts.zipWithIndex.foreach { case (t, i) => vector.putByteArray(i, t) }
    }
    vector
  }

  for (kind <- Seq("dictionary", "plain", "null", "reversed", "constant", "binary"))
    test(s"long strings after short ones: $kind") {
      val batches = Seq(Seq.fill(4096)("x".getBytes), Seq.fill(200)(long)).map { texts =>
        val numbers = new OnHeapColumnVector(texts.size, IntegerType)
        texts.indices.foreach(i => numbers.putInt(i, i))
        new ColumnarBatch(Array(numbers, vectorOf(texts, kind)), texts.size)
      }
      val (sizes, rows) =
        blocksOf(batches.iterator, if (kind == "binary") BinaryType else StringType)
      assert(rows === 4096 + 200)
      // As much as is kept, and the last string. Strings are kept twice, once encoded, but those of
      // a dictionary only once.
      val kept = if (kind == "dictionary") 32 else 16
      assert(sizes.max < (kept + 2 << 20))
    }

  test("a step copies few bytes, and takes the same rows of each column") {
    val types = Seq(IntegerType, StringType, StringType, StringType, LongType)
    val r = new Random(3)
    def texts = Seq.fill(500)(Array.fill(r.nextInt(60))((97 + r.nextInt(26)).toByte))
    for (partitions <- Seq(1, 3); nulls <- Seq(false, true)) {
      val runs = new PartitionedColumnBuffer(
        types,
        partitions,
        BatchPartitioner.byRow(row => Math.floorMod(row.getInt(0), partitions)))
      val columns = Seq("dictionary", if (nulls) "null" else "plain", "reversed").map(_ -> texts)
      val numbers = new OnHeapColumnVector(500, IntegerType)
      val longs = new OnHeapColumnVector(500, LongType)
      (0 until 500).foreach { i =>
        numbers.putInt(i, i)
        if (nulls && i % 3 == 0) longs.putNull(i) else longs.putLong(i, i)
      }
      val vectors = numbers +: columns.map { case (kind, of) => vectorOf(of, kind) } :+ longs
      val batch = new ColumnarBatch(vectors.toArray, 500)
      var (row, steps) = (0, 0)
      while (row < 500) {
        val before = runs.size
        val added = runs.add(batch, row, math.min(500, row + 128), mostBytes = 200)
        assert(added > 0 && runs.size - before < 128 * 100 + 3 * 2 * 260)
        row += added
        steps += 1
      }
      assert(steps > 500 / 10)
      val read = new ColumnBlockRows(types)
      // A block is valid until the next one.
      val rows = runs
        .drain()
        .flatMap { case (_, _, block) =>
          val bytes = block.array.slice(4, block.size) ++ new Array[Byte](BitPacking.Slack)
          read.open(bytes, block.size - 4)
          Iterator.continually(read).takeWhile(_.hasNext).map { rows =>
            rows.next()
            val texts = (1 to 3).map(c => Option(rows.row.getUTF8String(c)).map(_.toString))
            val long = if (rows.row.isNullAt(4)) None else Some(rows.row.getLong(4))
            (rows.row.getInt(0), texts, long)
          }
        }
        .toList
      val expected = (0 until 500).map { i =>
        val texts = columns.map { case (kind, of) =>
          if (kind == "null" && i == 0) None else Some(new String(of(i)))
        }
        (i, texts, if (nulls && i % 3 == 0) None else Some(i.toLong))
      }
      assert(rows.sortBy(_._1) === expected)
    }
  }

  test("as many rows as fill a block of each partition") {
    for (numPartitions <- Seq(2, 16)) {
      var rows = 0L
      val partitions = TestTask.run(TestMemory.limited(Long.MaxValue)) { context =>
        val runs = new PartitionedColumnBuffer(
          Seq(IntegerType, StringType),
          numPartitions,
          BatchPartitioner.byRow(_.getInt(0) % numPartitions))
        val text = UTF8String.fromString("x" * 100)
        val batches = Iterator.fill(numPartitions * 64)(batchOf(text))
        new ColumnBlocks(batches, runs, rows += _, new SQLMetric("size"), copies = false, context)
          .map(_._1)
          .toList
      }
      val flushes = partitions.sliding(2).count { case Seq(a, b) => b < a } + 1
      // 64 batches of 256 rows a partition are more than four blocks.
      val expected = if (numPartitions == 16) 5 else 2
      assert(flushes === expected, s"$numPartitions partitions")
      assert(rows + partitions.size === numPartitions * 64L * numRows)
    }
  }

  test("short ones are put into as few blocks as readers take") {
    val (sizes, rows) = blocksOf(Iterator.fill(32)(batchOf(UTF8String.fromString("x"))))
    assert(rows === 32 * numRows)
    assert(sizes.size === 32 * numRows / PartitionedColumnBuffer.BlockRows)
  }
}
