package io.github.skewext.shuffle

import io.github.skewext.StoredTables
import io.github.skewext.explain.Explainer
import io.github.skewext.platform.SkewConf
import org.apache.spark.sql.skewext.{SqlInternals, TestShuffles}


import org.apache.spark.SparkConf
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.exchange.{ShuffleExchangeExec, ShuffleExchangeLike}

/**
 * Shuffles by a manager of another class: columns, reads of a range of map tasks, and the reasons
 * that `explain` gives for rows.
 */
class OtherShuffleManagerSuite extends StoredTables {

  override protected def sparkConf: SparkConf =
    super.sparkConf.set("spark.shuffle.manager", TestShuffles.OtherManager.getName)

  private def input(i: Int, rows: Int = 6000): DataFrame = stored(
    s"t$i-$rows",
    spark
      .range(0, rows.toLong, 1, 3)
      .selectExpr(
        s"if(id % 11 = $i, null, id * ${i + 2} % 2300) AS k",
        s"concat('v', id) AS v$i",
        s"if(id % 3 = 0, cast(id AS int) - 30, null) AS n$i"))

  private def rowsOf(i: Int): DataFrame =
    spark.range(60).selectExpr("id % 7 AS k", s"id AS r$i")

  private def columns(df: DataFrame): Seq[ShuffleExchangeLike] =
    exchanges(df).filter(_.isInstanceOf[ColumnShuffleExchangeExec])

  private def explained(df: DataFrame) = SqlInternals
    .withActive(spark)(Explainer.explain(df.queryExecution))
    .joins
    .flatMap(_.execution)

  for (adaptive <- Seq("true", "false")) {
    test(s"shuffles columns as blocks, and other types by Spark's exchange, adaptive $adaptive") {
      withSQLConf("spark.sql.adaptive.enabled" -> adaptive, "spark.sql.shuffle.partitions" -> "7") {
        val nested = rowsOf(4).selectExpr("k", "array(r4) AS r4")
        val df = fullJoin("k")(input(0), input(1), rowsOf(2), input(3, 90), nested)
        checkJoin(df)
        assert(columns(df).size === 4, df.queryExecution.executedPlan)
        val others = exchanges(df).diff(columns(df))
        assert(others.map(_.getClass) === Seq(classOf[ShuffleExchangeExec]))
        val execution = explained(df).head
        assert(execution.columns === 4)
        assert(execution.byRow === Seq(RowShuffleReason.ColumnType("array").text))
      }
    }
  }

  test("samples keys, and splits a skewed partition by ranges of map tasks", Slow) {
    withSQLConf(SplitsFrom10KB :+ (SkewConf.SKEW_OUTPUT_SAMPLE_EVERY.key -> "3"): _*) {
      for (rows <- Seq(false, true)) {
        val large = if (rows) hot.selectExpr("k", "h + 1 AS h") else hot
        val df = fullJoin("k")(large, input(1, 90), input(2, 90))
        checkJoin(df)
        assert(columns(df).size === 3)
        assert(explained(df).head.counted === 3)
        assert(df.queryExecution.executedPlan.toString.contains("skew"), rows)
      }
    }
  }

  test("retried map tasks write the same blocks") {
    withSQLConf("spark.sql.adaptive.enabled" -> "false") {
      val df = fullJoin("k")(input(0), input(1))
      val rows = df.collect()
      columns(df).foreach { case e: ColumnShuffleExchangeExec => TestShuffles.lose(e.shuffleId) }
      assertSameRows(df.queryExecution.executedPlan.executeCollectPublic(), rows.toSeq, "before")
    }
  }
}
