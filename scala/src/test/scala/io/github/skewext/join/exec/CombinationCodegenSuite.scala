package io.github.skewext.join.exec

import io.github.skewext.MultiJoinTest

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.{InputAdapter, SparkPlan, WholeStageCodegenExec}
import org.apache.spark.sql.functions._

/** Operators above a join that read its columns without a row in between. */
class CombinationCodegenSuite extends MultiJoinTest {

  override protected def generatesCode: Boolean = true

  private def input(i: Int): DataFrame = spark
    .range(0, 50, 1, 2)
    .select(
      when(col("id") % 9 =!= i, (col("id") * (i + 2)) % 21).as("k"),
      when(col("id") % 4 =!= i, concat(lit(s"v$i "), col("id"))).as(s"s$i"),
      (col("id") % 7 + i).as(s"n$i"))

  private def joined: DataFrame = fullJoin("k")((0 until 4).map(input): _*)

  /** None if the join is not in generated code, else whether operators above are in the same. */
  private def generated(df: DataFrame): Option[Boolean] = {
    def hasJoin(plan: SparkPlan): Boolean = plan match {
      case _: InputAdapter => false
      case _: MultiFullJoinExec => true
      case other => other.children.exists(hasJoin)
    }
    val stages = collectWithSubqueries(df.queryExecution.executedPlan) {
      case stage: WholeStageCodegenExec if hasJoin(stage.child) => stage.child
    }
    assert(stages.size <= 1)
    stages.headOption.map(!_.isInstanceOf[MultiFullJoinExec])
  }

  private val queries: Seq[(String, DataFrame => DataFrame)] = Seq(
    "count(*)" -> (_.groupBy().count()),
    "sums" -> (_.agg(sum("n0"), sum(col("n1") + col("n3")), count("s2"), count("k"))),
    "a group-by of the key" -> (_.groupBy("k").agg(sum("n2"), count("s3"))),
    "a filter" -> (_.where("n0 > n1 OR s2 IS NULL")),
    "a projection" -> (_.select(concat_ws("-", col("s0"), col("s3")), col("k") + 1, col("n2"))),
    "one column of one input" -> (_.select("s1")),
    "explode" -> (_.select(col("k"), explode(array("n0", "n1")))),
    "a join with a broadcast table" -> { df =>
      df.join(broadcast(spark.range(15).toDF("k")), Seq("k"), "left_semi")
    })

  for {
    ((name, query), i) <- queries.zipWithIndex
    adaptive <- if (testAll) Seq(true, false) else Seq(i % 2 == 0)
  } {
    test(
      s"$name above the join reads the inputs' rows, adaptive execution $adaptive",
      Slow(
        "a filter above the join reads the inputs' rows, adaptive execution false",
        "a group-by of the key above the join reads the inputs' rows, adaptive execution true",
        "a join with a broadcast table above the join reads the inputs' rows, adaptive execution false",
        "a projection above the join reads the inputs' rows, adaptive execution true",
        "count(*) above the join reads the inputs' rows, adaptive execution true",
        "sums above the join reads the inputs' rows, adaptive execution false")) {
      withSQLConf("spark.sql.adaptive.enabled" -> adaptive.toString) {
        val df = query(joined)
        checkJoin(df)
        assert(generated(df) === Some(true), df.queryExecution.executedPlan)
        withSQLConf("spark.sql.codegen.wholeStage" -> "false") {
          val rows = again(df)
          checkAnswer(rows, df.collect().toSeq)
          assert(generated(rows) === None)
        }
      }
    }
  }

  test("a join at the top of its stage makes rows itself") {
    val df = joined
    checkJoin(df)
    assert(generated(df) === Some(false))
    val shuffled = joined.repartition(2, col("n0"))
    checkJoin(shuffled)
    assert(generated(shuffled) === Some(false))
  }

  test("a limit ends the stage, and rows before it are right", Slow) {
    for (limit <- Seq(0, 1, 7, 1000)) {
      val expected = joined.collect().toSeq
      val rows = joined.where("k IS NOT NULL").limit(limit).collect().toSeq
      assert(rows.size === math.min(limit, expected.count(!_.isNullAt(0))))
      assert(rows.diff(expected).isEmpty)
    }
  }

  test("the indicator, and roles") {
    val df = multiJoin(
      (0 until 3).map(input),
      Seq("k"),
      roles = Seq("required", "optional", "excluded"),
      indicator = "found").where(size(col("found")) === 2).select("k", "found", "n1")
    checkJoin(df)
    assert(generated(df) === Some(true))
  }

  test("not where an input generates code of its own, and not for too many columns", Slow) {
    val grouped = input(0).groupBy("k").agg(sum("n0").as("n0"))
    val ofGroups = fullJoin("k")(grouped, input(1), input(2)).groupBy().agg(sum("n0"))
    checkJoin(ofGroups)
    assert(generated(ofGroups) === None)
    withSQLConf("spark.sql.codegen.maxFields" -> "8") {
      val wide = joined.agg(
        sum("n0"),
        sum("n1"),
        sum("n2"),
        sum("n3"),
        max("s0"),
        max("s1"),
        max("s2"),
        max("s3"))
      checkJoin(wide)
      assert(generated(wide) === None)
    }
  }

  test("code that does not compile in one method falls back to rows") {
    withSQLConf("spark.sql.codegen.hugeMethodLimit" -> "1") {
      checkJoin(joined.agg(sum("n0"), count("s3")))
    }
  }
}
