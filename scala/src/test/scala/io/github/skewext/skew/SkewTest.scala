package io.github.skewext.skew

import io.github.skewext.platform.SkewConf
import io.github.skewext.skew.plan.SkewReason
import io.github.skewext.skew.run.SplitJoinExec
import io.github.skewext.{MultiJoinTest, RandomSeed}

import org.apache.spark.SparkConf
import org.apache.spark.sql.functions._
import org.apache.spark.sql.{DataFrame, Row}

/** Small data that is skewed by thresholds that are smaller still. */
trait SkewTest extends MultiJoinTest {

  protected val Threshold = "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes"
  protected val Factor = "spark.sql.adaptive.skewJoin.skewedPartitionFactor"
  protected val Advisory = "spark.sql.adaptive.advisoryPartitionSizeInBytes"

  override protected val shufflePartitions = 5

  /** Whether exchanges write columns. So few rows of texts like these have a third of the bytes then. */
  protected def byColumn: Boolean = false

  // How many bytes rows have must not depend on how well they can be compressed.
  override protected def sparkConf: SparkConf =
    super.sparkConf
      .set("spark.shuffle.compress", "false")
      .set(SkewConf.SHUFFLE_ENABLED.key, byColumn.toString)

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    Seq(
      Threshold -> "2500",
      Factor -> "2",
      Advisory -> "2000",
      "spark.sql.autoBroadcastJoinThreshold" -> "-1",
      // As users have it: tasks read several small partitions.
      "spark.sql.adaptive.coalescePartitions.enabled" -> "true").foreach { case (key, value) =>
      spark.conf.set(key, value)
    }
  }

  /** With Spark's exchanges, for inputs that are too small in columns to be skewed. */
  protected def byRow(body: => Unit): Unit =
    withSQLConf(SkewConf.SHUFFLE_ENABLED.key -> "false")(body)

  /**
   * Whether joins of random cases are split. Of some seeds few are; it goes on then until more than
   * `wanted` are.
   */
  protected def checkSplits(runs: Int, wanted: Int)(isSplit: Long => Boolean): Unit = {
    var done, split = 0
    while (done < runs || split <= wanted && done < 10 * runs) {
      if (isSplit(RandomSeed.first + done)) split += 1
      done += 1
    }
    assert(split > wanted, s"only $split of $done joins were split")
  }

  /**
   * Rows 0 until `rows`, written by `maps` tasks: of every four, `hot` have key 3, the others one of
   * `keys` keys from `i` on; every eleventh has none.
   */
  protected def skewed(i: Int, rows: Int, hot: Int = 0, keys: Int = 40, maps: Int = 4): DataFrame =
    spark
      .range(0, rows, 1, maps)
      .select(
        when(
          col("id") % 11 =!= 5,
          when(col("id") % 4 < hot, lit(3L)).otherwise(col("id") % keys + i))
          .as("k"),
        col("id").as(s"v$i"),
        md5((col("id") + i).cast("string").cast("binary")).as(s"s$i"))

  /** Inputs of which the first one has a hot key. */
  protected def hotFirst(n: Int): Seq[DataFrame] =
    skewed(0, 800, hot = 2) +: (1 until n).map(i => skewed(i, 60))

  protected def splitJoins(df: DataFrame): Seq[SplitJoinExec] =
    operators(df).collect { case split: SplitJoinExec => split }

  /** Runs the query; its join must have been split, and its rows be those of Spark's own plan. */
  protected def checkSplit(df: DataFrame): SplitJoinExec = {
    val rows = df.collect().toSeq
    val joins = splitJoins(df)
    assert(joins.size === 1, s"${reasons(df)} ${df.queryExecution.executedPlan}")
    assertSameRows(rows, rowsWhenOff(df), "the same query with skewext off")
    checkMetrics(joins.head)
    joins.head
  }

  private def checkMetrics(join: SplitJoinExec): Unit = {
    def value(name: String) = join.metrics(name).value
    val splits = join.splits
    assert(value("numSkewedPartitions") === splits.partitions.size)
    assert(value("numPieces") === splits.pieces)
    assert(value("numResiduals") === splits.residuals)
    assert(value("rereadSize") === splits.rereadBytes)
    assert(value("numMarkingTasks") === splits.markingTasks)
    assert(value("numPieceRows") + value("numResidualRows") <= value("numOutputRows"))
  }

  /** Runs the query; no join must have been split, and the rows be those of Spark's own plan. */
  protected def checkWhole(df: DataFrame): Seq[Row] = {
    val rows = df.collect().toSeq
    assert(splitJoins(df).isEmpty, df.queryExecution.executedPlan)
    assertSameRows(rows, rowsWhenOff(df), "the same query with skewext off")
    rows
  }

  /** Why the joins of an executed query were left whole. */
  protected def reasons(df: DataFrame): Seq[SkewReason] =
    collectWithSubqueries(df.queryExecution.executedPlan) { case node =>
      SkewReason.of(node).map(_.reason)
    }.flatten

  protected def withSkewOff[T](body: => T): T = {
    var result: Option[T] = None
    withSQLConf(SkewConf.SKEW_ENABLED.key -> "false") {
      result = Some(body)
    }
    result.get
  }
}
