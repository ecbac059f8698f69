package io.github.skewext.shuffle

import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.vectorized.{ConstantColumnVector, OnHeapColumnVector}
import org.apache.spark.sql.skewext.{TaskInternals, TestConsumer, TestMemory, TestTask}
import org.apache.spark.sql.test.SharedSparkSession
import org.apache.spark.sql.types.{IntegerType, StringType}
import org.apache.spark.sql.vectorized.ColumnarBatch
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
  private def blocksOf(batches: Iterator[ColumnarBatch]): (Seq[Int], Long) = {
    var rows = 0L
    val sizes = TestTask.run(TestMemory.limited(Long.MaxValue)) { context =>
      val runs =
        new PartitionedColumnBuffer(Seq(IntegerType, StringType), 1, BatchPartitioner.byRow(_ => 0))
      new ColumnBlocks(batches, runs, rows += _, new SQLMetric("size"), copies = false, context)
        .map(_._2.size)
        .toList
    }
    // Blocks are records to Spark's writer, which counts them.
    (sizes, rows + sizes.size)
  }

  test("long strings of which a batch has one copy do not fill the heap") {
    // So many different letters that they are not packed.
    val text = UTF8String.fromBytes(Array.tabulate(1 << 20)(i => (32 + i % 95).toByte))
    val (sizes, rows) = blocksOf(Iterator.fill(2)(batchOf(text)))
    assert(rows === 2 * numRows)
    assert(sizes.map(_.toLong).sum > 2L * numRows * (1 << 20))
    // As much as is kept, what has come last, and a column's description.
    assert(sizes.max < (32 << 20) + (16 << 20) + 1024)
  }

  test("the first rows of a task may have long strings") {
    val text = UTF8String.fromBytes(Array.tabulate(8 << 20)(i => (32 + i % 95).toByte))
    val (sizes, rows) = blocksOf(Iterator(batchOf(text, numRows = 16)))
    assert(rows === 16)
    assert(sizes.max < (32 << 20) + (16 << 20) + 1024)
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

  test("long strings of a dictionary after short ones") {
    val short = Seq.fill(4096)("x".getBytes)
    val long = Seq.fill(512)(Array.tabulate(1 << 20)(i => (32 + i % 95).toByte))
    val batches = Seq(short, long).map { texts =>
      val numbers = new OnHeapColumnVector(texts.size, IntegerType)
      texts.indices.foreach(i => numbers.putInt(i, i))
      val shared = new OnHeapColumnVector(texts.size, StringType)
      DictionaryVectors.fill(shared, texts)
      new ColumnarBatch(Array(numbers, shared), texts.size)
    }
    val (sizes, rows) = blocksOf(batches.iterator)
    assert(rows === 4096 + 512)
    assert(sizes.max < (32 << 20) + (128 << 20) + 1024 * 1024)
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
