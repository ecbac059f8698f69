package org.apache.spark.sql.skewext.lab

import java.io.{File, InputStream}
import java.lang.management.ManagementFactory

import scala.collection.mutable

import org.apache.spark.rdd.RDD
import org.apache.spark.shuffle.sort.SerializedShuffleHandle
import org.apache.spark.shuffle.{ShuffleHandle, ShuffleWriteProcessor}
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution.exchange.{ENSURE_REQUIREMENTS, ShuffleExchangeExec}
import org.apache.spark.sql.execution.metric.SQLShuffleWriteMetricsReporter
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.skewext.{BulkShuffleExchangeExec, ColumnShuffleExchangeExec}
import org.apache.spark.sql.types.LongType
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.sql.{Column, SparkSession}
import org.apache.spark.unsafe.hash.Murmur3_x86_32
import org.apache.spark.{Partitioner, ShuffleDependency, SparkContext, SparkEnv, TaskContext}

/**
 * What columns instead of rows would save a shuffle, on one thread: README.md beside this says what is
 * measured. Arguments: rows, rounds, and optionally tables, partitions, ways and megabytes of a flush,
 * each a list by commas or `-`.
 */
object ColumnShuffleLab {

  /** Thread time, bytes of the shuffle's file, and what was read from it. */
  private case class Measured(writing: Long, bytes: Long, reading: Long, sums: Sums)

  private val Rows = "rows, bulk"

  private val Ways: Seq[Way] = Seq(
    Way("scattered", "scattered"),
    Way("scattered, LZ4 where it shrinks", "scattered", compresses = true),
    Way("gathered", "gathered"),
    Way("appended", "appended"),
    Way("scattered, whole bytes", "scattered", wholeBytes = true),
    Way("scattered, no dictionaries", "scattered", dictionaries = false),
    Way("scattered, by Spark's writer", "scattered", throughSpark = true),
    Way(
      "scattered, by Spark's serialized writer",
      "scattered",
      throughSpark = true,
      serialized = true))

  def main(args: Array[String]): Unit = {
    def list(i: Int, all: Seq[String]): Seq[String] =
      args.lift(i).filter(_ != "-").fold(all)(_.split(',').toSeq)
    val rows = args.headOption.fold(1000000)(_.toInt)
    val rounds = args.lift(1).fold(11)(_.toInt)
    val folder = new File("target/lab").getAbsoluteFile
    folder.mkdirs()
    val spark = SparkSession
      .builder()
      .master("local[1]")
      .config("spark.ui.enabled", "false")
      .config("spark.sql.adaptive.enabled", "false")
      .config("spark.sql.shuffle.partitions", "1")
      .config("spark.sql.files.maxPartitionBytes", "8g")
      .config("spark.local.dir", folder.getPath)
      .getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try {
      for (table <- list(2, Tables.map(_._1))) {
        val path = new File(folder, s"$table-$rows").getPath
        if (!new File(path, "_SUCCESS").exists) write(spark, table, rows, path)
        for {
          partitions <- list(3, Seq("16", "64", "200", "1000")).map(_.toInt)
          flush <- list(5, Seq("64")).map(_.toInt)
        } {
          val ways = list(4, Ways.indices.map(_.toString)).map(i => Ways(i.toInt))
          new Comparison(spark, path, folder, table, rows, partitions, flush, ways).run(rounds)
        }
      }
    } finally spark.stop()
  }

  /** As in bench/harness/data.py. */
  private def number(seed: Int, below: Long): Column =
    pmod(xxhash64(col("id"), lit(0L), lit(seed)), lit(below))
  private def long: Column = xxhash64(col("id"))
  private def string: Column = substring(md5(col("id").cast("string")), 1, 16)
  private def text(seed: Int): Column = concat(lit("v"), number(seed, 5000).cast("string"))
  private def values: Seq[Column] = (0 until 3).map(number(_, 1000)) :+ text(3)

  private val Tables: Seq[(String, Seq[Column])] = Seq(
    "two-longs" -> Seq(long, number(0, 1000)),
    "two-random-longs" -> Seq(long, xxhash64(col("id"), lit(1))),
    "n4-long" -> (long +: values),
    "n4-string-16" -> (string +: values),
    "ten-columns" -> (string +: values ++: Seq(
      xxhash64(col("id"), lit(1)),
      number(4, 1L << 40),
      number(5, 2),
      text(6),
      number(7, 1000000))))

  private def write(spark: SparkSession, table: String, rows: Int, path: String): Unit = {
    val columns = Tables.toMap.apply(table)
    spark
      .range(0, 2L * rows, 1, 16)
      .where(pmod(xxhash64(col("id"), lit(100)), lit(2)) === 0)
      .select(columns.zipWithIndex.map { case (column, i) => column.as(s"c$i") }: _*)
      .orderBy(rand(7))
      .write
      .mode("overwrite")
      .parquet(path)
  }

  private final class Comparison(
      spark: SparkSession,
      path: String,
      folder: File,
      table: String,
      rows: Int,
      numPartitions: Int,
      flushMegabytes: Int,
      ways: Seq[Way]) {

    private val sc: SparkContext = spark.sparkContext
    private def plan: SparkPlan = spark.read.parquet(path).queryExecution.executedPlan
    private def batches: RDD[ColumnarBatch] =
      plan.collectFirst { case scan: FileSourceScanExec => scan.executeColumnar() }.get
    private val types = plan.output.map(_.dataType)
    private def byKey(child: SparkPlan) = HashPartitioning(child.output.take(1), numPartitions)

    /** What was built of it, which gives rows again. */
    private def byColumn(child: SparkPlan): ColumnShuffleExchangeExec = {
      val scan = child.collectFirst { case scan: FileSourceScanExec => scan }.get
      ColumnShuffleExchangeExec(byKey(scan), scan, ENSURE_REQUIREMENTS, None)
    }

    private val shuffling: Seq[(String, Boolean => Measured)] =
      Seq[(String, Boolean => Measured)](
        Rows -> (rowShuffle(
          child => BulkShuffleExchangeExec(byKey(child), child).shuffleDependency,
          _)),
        "the exchange by column" -> (rowShuffle(byColumn(_).shuffleDependency, _)),
        "rows, Spark's" -> (rowShuffle(
          child => ShuffleExchangeExec(byKey(child), child).shuffleDependency,
          _))) ++
        ways.map(way =>
          way.name -> (if (way.throughSpark) blockShuffle(way, _: Boolean)
                       else blockFile(way, _: Boolean)))

    private val reading: Seq[(String, () => Long)] = Seq(
      "batches" -> (() => inTask(batches)(_.foreach(_.numRows))._1),
      "rows of batches" -> (() => inTask(plan.execute())(_.foreach(_.numFields))._1))

    def run(rounds: Int): Unit = {
      val sums = shuffling.map { case (name, measure) => name -> measure(true).sums }
      sums.foreach { case (name, sum) => require(sum == sums.head._2, s"$name: $sums") }
      val measured = mutable.Map.empty[String, Seq[Measured]].withDefaultValue(Nil)
      val scanned = mutable.Map.empty[String, Seq[Long]].withDefaultValue(Nil)
      val warmUp = math.max(2, rounds / 4)
      for (round <- -warmUp until rounds) {
        System.gc()
        for ((name, time) <- reading) {
          val taken = time()
          if (round >= 0) scanned(name) :+= taken
        }
        for ((name, measure) <- shuffling) {
          val one = measure(false)
          if (round >= 0) measured(name) :+= one
        }
      }
      def perRow(nanos: Seq[Long]): Double = median(nanos.map(_.toDouble)) / rows
      println(s"\n$table, $rows rows, $numPartitions partitions, flushes of $flushMegabytes MB")
      val scan = perRow(scanned("batches"))
      println(
        f"scan to batches $scan%.0f ns a row, to rows ${perRow(scanned("rows of batches"))}%.0f")
      println(
        "| | writing | / bulk rows | without scan | / bulk rows | reading | / bulk rows " +
          "| bytes a row | / bulk rows |")
      println("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
      val base = measured(Rows)
      for ((name, _) <- shuffling) {
        val own = measured(name)
        // Of each round, as others are on the machine.
        def ratio(of: Measured => Double): Double =
          median(own.zip(base).map { case (a, b) => of(a) / of(b) })
        val writing = perRow(own.map(_.writing))
        val bytes = own.head.bytes.toDouble
        println(
          f"| $name | $writing%.0f | ${ratio(_.writing.toDouble)}%.2f " +
            f"| ${writing - scan}%.0f | ${ratio(_.writing - scan * rows)}%.2f " +
            f"| ${perRow(own.map(_.reading))}%.0f | ${ratio(_.reading.toDouble)}%.2f " +
            f"| ${bytes / rows}%.1f | ${bytes / base.head.bytes}%.2f |")
      }
    }

    private def median(values: Seq[Double]): Double = values.sorted.apply(values.size / 2)

    private def rowShuffle(
        dependency: SparkPlan => ShuffleDependency[_, _, _],
        each: Boolean): Measured = {
      val isLong = types.map(_ == LongType).toArray
      shuffle(dependency(plan), each)(records => sumOfRows(records, isLong))
    }

    private def blockShuffle(way: Way, each: Boolean): Measured = {
      val (types, numPartitions, budget) = (this.types, this.numPartitions, flushMegabytes << 20)
      val blocks = batches.mapPartitionsInternal { batches =>
        val scatter = Scatter(types, numPartitions, way)
        val buffer = new Bytes(1 << 16)
        Iterator.continually(batches.hasNext).takeWhile(identity).flatMap { _ =>
          scatter.clear()
          while (batches.hasNext && scatter.size < budget) scatter.add(batches.next())
          scatter.finish()
          (0 until numPartitions).iterator.filter(scatter.rows(_) > 0).map { p =>
            buffer.size = 0
            scatter.block(p, buffer)
            (p, buffer): Product2[Int, Bytes]
          }
        }
      }
      val dependency = new BlockDependency(
        blocks,
        numPartitions,
        ShuffleExchangeExec.createShuffleWriteProcessor(
          SQLShuffleWriteMetricsReporter.createShuffleWriteMetrics(sc)),
        way.serialized)
      shuffle(dependency, each) { records =>
        val reader = new BlockReader(types)
        records.map(in => reader.sum(in._2.asInstanceOf[InputStream])).foldLeft(Sums())(_ + _)
      }
    }

    private def shuffle(dependency: ShuffleDependency[_, _, _], each: Boolean)(
        sum: Iterator[Product2[Any, Any]] => Sums): Measured = {
      val (writing, _) = ThreadTimes.of(sc)(sc.submitMapStage(asAny(dependency)))
      val handle = dependency.shuffleHandle
      val ranges = readRanges(each)
      val (reading, sums) = inTask(sc.parallelize(Seq(0), 1)) { _ =>
        ranges.map { case (from, until) =>
          val context = TaskContext.get()
          val records = SparkEnv.get.shuffleManager
            .getReader[Any, Any](
              handle,
              from,
              until,
              context,
              context.taskMetrics().createTempShuffleReadMetrics())
            .read()
          sum(records)
        }
      }
      SparkEnv.get.shuffleManager.unregisterShuffle(dependency.shuffleId)
      Measured(writing.nanos, writing.shuffleBytes, reading, summary(sums))
    }

    private def blockFile(way: Way, each: Boolean): Measured = {
      val (types, numPartitions, budget) = (this.types, this.numPartitions, flushMegabytes << 20)
      val file = new BlockFile(new File(folder, "blocks"), numPartitions)
      val (writing, size) = inTask(batches) { batches =>
        val scatter = Scatter(types, numPartitions, way)
        while (batches.hasNext) {
          scatter.add(batches.next())
          if (scatter.size >= budget || !batches.hasNext) file.write(scatter)
        }
        file.finish()
      }
      val ranges = readRanges(each)
      val (reading, sums) = inTask(sc.parallelize(Seq(0), 1)) { _ =>
        val reader = new BlockReader(types)
        ranges.map { case (from, until) =>
          reader.sum(if (until - from == 1) file.open(from) else file.open())
        }
      }
      Measured(writing, size, reading, summary(sums))
    }

    private def readRanges(each: Boolean): Seq[(Int, Int)] =
      if (each) (0 until numPartitions).map(p => (p, p + 1)) else Seq((0, numPartitions))

    /** With a hash of what each partition has, so that a row in another one is told. */
    private def summary(sums: Seq[Sums]): Sums =
      sums
        .foldLeft(Sums())(_ + _)
        .copy(rows = if (sums.size == 1) sums.head.rows else sums.hashCode)

    /** The time of the thread, in a task that does this alone. Closures stay in this JVM. */
    private def inTask[T, R](rdd: RDD[T])(body: Iterator[T] => R): (Long, R) = {
      Handed.body = values => {
        val threads = ManagementFactory.getThreadMXBean
        val before = threads.getCurrentThreadCpuTime
        val result = body(values.asInstanceOf[Iterator[T]])
        (threads.getCurrentThreadCpuTime - before, result)
      }
      sc.runJob(rdd, Handed.run[T] _, Seq(0))
      Handed.result.asInstanceOf[(Long, R)]
    }
  }

  private def asAny(dependency: ShuffleDependency[_, _, _]): ShuffleDependency[Any, Any, Any] =
    dependency.asInstanceOf[ShuffleDependency[Any, Any, Any]]

  private def sumOfRows(records: Iterator[Product2[Any, Any]], isLong: Array[Boolean]): Sums = {
    var rows = 0L
    var longs = 0L
    var hashes = 0L
    while (records.hasNext) {
      val row = records.next()._2.asInstanceOf[UnsafeRow]
      rows += 1
      var i = 0
      while (i < isLong.length) {
        if (isLong(i)) longs += row.getLong(i)
        else {
          val string = row.getUTF8String(i)
          hashes += Murmur3_x86_32
            .hashUnsafeBytes(string.getBaseObject, string.getBaseOffset, string.numBytes, 42)
        }
        i += 1
      }
    }
    Sums(rows, longs, hashes)
  }
}

/**
 * @param serialized by the writer that Spark takes for more partitions than it writes a file each for,
 *   however many there are
 */
private final class BlockDependency(
    blocks: RDD[_ <: Product2[Int, Bytes]],
    numPartitions: Int,
    processor: ShuffleWriteProcessor,
    serialized: Boolean)
    extends ShuffleDependency[Int, Bytes, Bytes](
      blocks,
      new ByNumber(numPartitions),
      new BlockSerializer,
      shuffleWriterProcessor = processor) {

  override val shuffleHandle: ShuffleHandle =
    if (serialized) new SerializedShuffleHandle(shuffleId, this)
    else SparkEnv.get.shuffleManager.registerShuffle(shuffleId, this)
}

/** The partition is the key. */
private final class ByNumber(override val numPartitions: Int) extends Partitioner {
  override def getPartition(key: Any): Int = key.asInstanceOf[Int]
}
