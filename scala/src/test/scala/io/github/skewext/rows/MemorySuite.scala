package io.github.skewext.rows

import io.github.skewext.MultiJoinTest


import org.apache.spark.SparkConf
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.functions._

/**
 * Queries in an executor with little memory, where all operators of a task need some of it at a time.
 * None may fail that Spark's own joins can run.
 */
class MemorySuite extends MultiJoinTest {

  override protected def sparkConf: SparkConf = super.sparkConf
    .set("spark.testing.memory", (24 << 20).toString)
    .set("spark.testing.reservedMemory", "0")
    // So that what runs in one task is the same everywhere.
    .set("spark.sql.adaptive.enabled", "false")

  // With few partitions fewer rows in all fill the memory of a task.
  override protected val shufflePartitions = 2

  private def input(i: Int, rows: Int): DataFrame = spark
    .range(0, rows, 1, 3)
    .select((col("id") * (i + 1)).as("k"), (col("id") % 7).as(s"v$i"))

  /** Its aggregation ends in the task of the join, without an exchange between. */
  private def aggregated(i: Int, rows: Int): DataFrame =
    input(i, rows).groupBy("k").agg(sum(s"v$i").as(s"s$i"))

  /** Rows and a checksum, to compare many rows without collecting them. */
  private def summary(df: DataFrame): DataFrame =
    df.select(count("*"), sum(hash(df.columns.map(col): _*)))

  /** Returns how many bytes the join spilled. */
  private def check(df: DataFrame): Long = {
    val summarized = summary(df)
    checkJoin(summarized)
    operators(summarized).map(_.metrics("spillSize").value).sum
  }

  test("more rows than memory", Slow) {
    assert(check(fullJoin("k")((0 until 3).map(input(_, 170000)): _*)) > 0)
    // The memory is as little as it is meant to be, and not less.
    assert(check(fullJoin("k")((0 until 3).map(input(_, 7000)): _*)) === 0)
  }

  test("inputs that are aggregated in the join's task", Slow) {
    val inputs = (0 until 3).map(aggregated(_, 67000))
    val joined = fullJoin("k")(inputs: _*)
    val window = "row_number() OVER (PARTITION BY k ORDER BY s0, s1) AS n"
    // What is above wants memory as well.
    val above = Seq(joined.groupBy("k").agg(sum("s0"), max("s1")), joined.selectExpr("*", window))
    check(joined)
    some(1, above).foreach(check)
  }

  test("joins in the task of a join", Slow) {
    val rows = 40000
    val inner = Seq(0, 2).map(i => fullJoin("k")(aggregated(i, rows), aggregated(i + 1, rows)))
    check(fullJoin("k")(inner: _*))
  }

  test("many partitions of the join in one task", Slow) {
    withSQLConf("spark.sql.shuffle.partitions" -> "60") {
      val joined = fullJoin("k")(input(0, 60000), input(1, 60000))
      check(joined.coalesce(1))
    }
  }

  test("a hot key in one input, and in two", Slow) {
    val hot = spark.range(0, 60000, 1, 4).select(lit(1L).as("k"), col("id").as("a"))
    val warm = spark.range(0, 5, 1, 1).select(lit(1L).as("k"), col("id").as("b"))
    check(fullJoin("k")(hot, warm, input(1, 1000)))
  }
}
