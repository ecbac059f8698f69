package io.github.skewext.skew

import io.github.skewext.execution.split.SplitJoinExec
import io.github.skewext.internal.SkewConf
import io.github.skewext.plan.SkewReason

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.functions._

/** How many files a join writes of which skewed partitions are split. */
class FilesBelowWritesSuite extends SkewTest {

  private def sides(hot: Int, maps: Int): (DataFrame, DataFrame) =
    (skewed(0, 800, hot, maps = maps), skewed(1, 60))

  private def join(how: String, maps: Int): DataFrame = {
    val (left, right) = sides(hot = 2, maps)
    left.join(right.hint("merge"), Seq("k"), how)
  }

  private val Unlimited =
    SkewConf.EXCLUDED_RULES.key -> MarkWrittenJoins.ruleName

  /** The plans that wrote the rows, and how many files they are in. */
  private def written(df: DataFrame): (Seq[SparkPlan], Int) = {
    var found = (Seq.empty[SparkPlan], 0)
    withTable("written") {
      val plans = plansOf(df.write.saveAsTable("written"))
      assertSameRows(spark.table("written").collect(), rowsWhenOff(df), "the query, written")
      found = (plans, spark.table("written").inputFiles.length)
    }
    found
  }

  private def splitIn(plans: Seq[SparkPlan]): Seq[SplitJoinExec] =
    plans.flatMap(operators(_)).collect { case split: SplitJoinExec => split }

  test("no more than of a join that Spark splits") {
    var stocks = 0
    withSQLConf(Off) {
      // The same partitions, in a join of a type that Spark splits.
      stocks = written(join("left", maps = 8))._2
    }
    val (plans, files) = written(join("full", maps = 8))
    assert(splitIn(plans).size === 1, plans)
    assert(files <= stocks)
    assert(files > 5)
    withSQLConf(Unlimited) {
      assert(written(join("full", maps = 8))._2 > stocks)
    }
  }

  test("what Spark would not split stays one file") {
    // One map task has written all of it.
    val (plans, files) = written(join("full", maps = 1))
    assert(splitIn(plans).isEmpty)
    val reasons = plans.flatMap(collect(_) { case node => SkewReason.of(node) }.flatten)
    assert(reasons.contains(SkewReason.FewFiles))
    assert(files <= shufflePartitions)
    withSQLConf(Unlimited) {
      assert(splitIn(written(join("full", maps = 1))._1).size === 1)
    }
  }

  test("a join whose rows are shuffled before they are written is split as it is elsewhere") {
    val df = join("full", maps = 1).groupBy((col("v0") % 3).as("g")).agg(count("*").as("n"))
    assert(splitIn(written(df)._1).size === 1)
    assert(splitIn(written(join("full", maps = 1).repartition(2, col("v0")))._1).size === 1)
  }

  test("a source that drops its rows has no files to be few") {
    val plans = plansOf(join("full", maps = 1).write.format("noop").mode("overwrite").save())
    assert(splitIn(plans).size === 1, plans)
  }
}
