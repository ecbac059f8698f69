package io.github.skewext.skew

import io.github.skewext.skew.run.SplitJoinExec

import org.apache.spark.SparkConf
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.functions._

/** Splits in an executor with little memory. */
trait SplitMemoryTest extends SkewTest {

  override protected val shufflePartitions = 2

  override protected def sparkConf: SparkConf = super.sparkConf
    .set("spark.testing.memory", (24 << 20).toString)
    .set("spark.testing.reservedMemory", "0")

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    Seq(Threshold -> "1m", Factor -> "1.1", Advisory -> "1m").foreach { case (key, value) =>
      spark.conf.set(key, value)
    }
  }

  /** Rows with keys of their own, all above those of the skewed input but one in `shared`. */
  protected def others(i: Int, rows: Int, shared: Int): DataFrame = spark
    .range(0, rows, 1, 4)
    .select(
      when(col("id") % shared === 0, col("id") / shared)
        .otherwise(col("id") + 10000000)
        .cast("long")
        .as("k"),
      col("id").as(s"v$i"),
      md5((col("id") + i).cast("string").cast("binary")).as(s"s$i"))

  /** The rows with longer text: a fourth of them fills the memory. */
  protected def wide(df: DataFrame, text: String): DataFrame =
    df.withColumn(text, repeat(col(text), 4))

  protected def inHotPartition(df: DataFrame): DataFrame =
    df.where(s"pmod(hash(k, 0L), $shufflePartitions) = pmod(hash(3L, 0L), $shufflePartitions)")

  /** Rows and a checksum, to compare many rows without collecting them. */
  private def summary(df: DataFrame): DataFrame =
    df.select(count("*"), sum(hash(df.columns.map(col): _*)))

  protected def check(inputs: Seq[DataFrame], first: String): SplitJoinExec =
    checkSplit(
      summary(multiJoin(inputs, Seq("k"), roles = first +: inputs.tail.map(_ => "optional"))))

  protected def value(join: SplitJoinExec, metric: String): Long = join.metrics(metric).value
}

/**
 * What the tasks of a split keep does not fit, and they spill it. None may fail, nor give other rows.
 * The rows of one task alone are more than there is memory, so nothing depends on which tasks meet.
 */
class SplitMemorySuite extends SplitMemoryTest {

  test("the rows that a piece keeps exceed the memory", Slow) {
    withSQLConf(Advisory -> "8m") {
      val large = wide(skewed(0, 150000, hot = 3), "s0")
      val join = check(Seq(large, others(1, 20000, 600), others(2, 20000, 700)), "required")
      assert(join.splits.pieces > 1 && join.splits.residuals === 0)
      assert(value(join, "spillSize") > 0)
    }
  }

  test("the keys that a residual looks for do not fit", Slow) {
    val hot = skewed(0, 200000, hot = 3)
    // Each row of the skewed input is in one piece; of those that the residual reads, it takes
    // hardly any as long as it knows what it is looking for, and all of them if not.
    def taken(join: SplitJoinExec): Double = {
      assert(join.splits.residuals > 0)
      value(join, "numRowsOfInput0") / 200000.0
    }
    val few = check(Seq(hot, others(1, 5000, 600)), "optional")
    assert(taken(few) < 1.1)
    val many = check(Seq(hot, inHotPartition(others(1, 400000, 2000))), "optional")
    assert(taken(many) > 1.3)
    assert(value(many, "spillSize") > 0)
  }
}

/** One task at a time: what memory it gets does not depend on when others run. */
class SplitMemoryOfOneTaskSuite extends SplitMemoryTest {

  override protected def sparkConf: SparkConf = super.sparkConf.set("spark.task.cpus", "2")

  test("a piece keeps only rows of other inputs that its slice can match", Slow) {
    val hot = wide(skewed(0, 50000, hot = 3), "s0")
    // The pieces would spill these rows if they kept them.
    val inputs = Seq(1 -> 600, 2 -> 700).map { case (i, shared) =>
      wide(inHotPartition(others(i, 50000, shared / 4)), s"s$i")
    }
    val join = check(hot +: inputs, "required")
    assert(join.splits.pieces > 2)
    assert(value(join, "spillSize") === 0)
  }
}
