package io.github.skewext.join

import io.github.skewext.MultiJoinTest
import io.github.skewext.platform.SkewConf

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec
import org.apache.spark.sql.functions._

/** Broadcasts of small inputs instead of shuffles, if all keys are those of one large input. */
class BroadcastSmallInputsSuite extends MultiJoinTest {

  private val Threshold = "spark.sql.autoBroadcastJoinThreshold"

  private def large: DataFrame = spark
    .range(0, 400, 1, 4)
    .select(
      when(col("id") % 17 =!= 3, col("id") % 40).as("k"),
      col("id").as("fact"),
      // Spark estimates the size of a row from the default sizes of its columns.
      repeat(lit("x"), 10).as("f1"),
      repeat(lit("y"), 10).as("f2"))

  /** Some keys are repeated, some are null, and the large input lacks some. */
  private def small(i: Int): DataFrame = spark
    .range(0, 30, 1, 2)
    .select(
      when(col("id") % 7 =!= i, (col("id") * (i + 1)) % 50).as("k"),
      (col("id") + 100 * i).as(s"d$i"))

  private val smallBytes = 30 * (8 + 8 + 8) + 8

  override protected def withAdaptive(body: => Unit): Unit = super.withAdaptive {
    withSQLConf(SkewConf.MULTI_JOIN_BROADCAST.key -> "true", Threshold -> smallBytes.toString)(body)
  }

  private def join(roles: String*)(inputs: DataFrame*): DataFrame =
    multiJoin(inputs, Seq("k"), roles = roles)

  private def broadcasts(df: DataFrame): Int =
    collectWithSubqueries(df.queryExecution.executedPlan) { case j: BroadcastHashJoinExec =>
      j
    }.size

  private def check(df: DataFrame, broadcast: Boolean): Unit = {
    val rows = df.collect().toSeq
    assert(operators(df).isEmpty === broadcast, df.queryExecution.executedPlan)
    assert((broadcasts(df) > 0) === broadcast)
    if (broadcast) {
      val shuffles = collectWithSubqueries(df.queryExecution.executedPlan) {
        case e: org.apache.spark.sql.execution.exchange.ShuffleExchangeLike => e
      }
      assert(shuffles.isEmpty, df.queryExecution.executedPlan)
    }
    assertSameRows(rows, rowsWhenOff(df), "the same query with skewext off")
    withSQLConf(SkewConf.MULTI_JOIN_BROADCAST.key -> "false") {
      val one = again(df)
      assertSameRows(rows, one.collect().toSeq, "the same query as one join")
      assert(operators(one).size === 1)
    }
  }

  for (roles <- Seq(
      Seq("required", "optional", "optional"),
      Seq("required", "optional", "excluded"),
      Seq("required", "required", "optional"),
      Seq("required", "required", "excluded"),
      Seq("required", "excluded", "excluded"),
      Seq("required", "required", "required"))) {
    test(
      s"broadcasts small inputs: ${roles.mkString(", ")}",
      Slow(
        "required, optional, excluded",
        "required, optional, optional",
        "required, required, excluded")) {
      withAdaptive {
        val inputs = Seq(large, small(1), small(2))
        check(join(roles: _*)(inputs: _*), broadcast = true)
        // Also if the large input is the last one.
        check(join(roles.tail :+ roles.head: _*)(inputs.tail :+ inputs.head: _*), broadcast = true)
      }
    }
  }

  test("returns columns in the order, with the names and nullability of one join") {
    withAdaptive {
      val df = join("optional", "required", "optional")(small(1), large, small(2))
      withSQLConf(SkewConf.MULTI_JOIN_BROADCAST.key -> "false")(
        assert(again(df).schema === df.schema))
      check(df, broadcast = true)
      check(df.where("d1 > 105").select("d2", "k"), broadcast = true)
    }
  }

  test("supports a group-by, a limit and another multi-way join above", Slow) {
    withAdaptive {
      val df = join("required", "optional", "optional")(large, small(1), small(2))
      val grouped = df.groupBy("k").agg(sum("fact"), sum("d1"), count("d2"))
      checkAnswer(grouped, rowsWhenOff(grouped))
      val again = join("required", "required")(df, large.select(col("k"), col("fact").as("other")))
      checkJoin(again)
      assert(operators(again).size === 1 && broadcasts(again) === 2)
      assert(df.limit(5).count() === 5)
    }
  }

  test("broadcasts a small input that the query caches first") {
    withSQLConf(
      "spark.sql.adaptive.enabled" -> "true",
      SkewConf.MULTI_JOIN_BROADCAST.key -> "true",
      Threshold -> "2000") {
      val few = spark.range(5000).selectExpr("id AS k", "id AS d1").where("d1 % 200 = 7")
      val cached = Seq(few, slowly(large, "fact")).map(_.cache())
      try check(join("optional", "required")(cached: _*), broadcast = true)
      finally cached.foreach(_.unpersist(blocking = true))
    }
  }

  test("broadcasts a small input whose own shuffle adaptive execution runs first") {
    withAdaptive {
      withSQLConf(Threshold -> "100000") {
        val grouped = small(1).groupBy("k").agg(sum("d1").as("d1"))
        val bigger = spark
          .range(5000)
          .select((col("id") % 60).as("k"), col("id").as("fact"), repeat(lit("x"), 10).as("f1"))
        val df = join("required", "optional", "optional")(bigger, grouped, small(2))
        df.collect()
        assert(operators(df).isEmpty && broadcasts(df) === 2, df.queryExecution.executedPlan)
        assertSameRows(df.collect().toSeq, rowsWhenOff(df), "the same query with skewext off")
      }
    }
  }

  test("shuffles an input that is larger than it was estimated") {
    withAdaptive {
      withSQLConf(Threshold -> "10000") {
        val facts = spark.range(2000).selectExpr("id % 1000 AS k", "id").groupBy("k").agg(sum("id"))
        val grown = underestimated(count("*").as("n"))
        val df = join("required", "optional")(facts, grown)
        assertSameRows(df.collect().toSeq, rowsWhenOff(df), "the same query with skewext off")
        val isAdaptive = spark.conf.get("spark.sql.adaptive.enabled").toBoolean
        assert(operators(df).nonEmpty === isAdaptive, df.queryExecution.executedPlan)
        // The third one is broadcast before the size of the second is known.
        val three = join("required", "optional", "optional")(facts, grown, small(1))
        assertSameRows(three.collect().toSeq, rowsWhenOff(three), "the same query with skewext off")
        if (isAdaptive) assert(broadcasts(three) <= 1, three.queryExecution.executedPlan)
      }
    }
  }

  test("does not broadcast if the join returns keys of small inputs", Slow) {
    withAdaptive {
      check(join("optional", "optional")(large, small(1)), broadcast = false)
      check(join("optional", "required")(large, small(1)), broadcast = false)
    }
  }

  test("does not broadcast if two inputs are large, or broadcasts are disabled", Slow) {
    withAdaptive {
      val other =
        large.select(col("k"), col("fact").as("g"), col("f1").as("g1"), col("f2").as("g2"))
      check(join("required", "optional", "optional")(large, small(1), other), broadcast = false)
      withSQLConf(Threshold -> "-1") {
        check(join("required", "optional")(large, small(1)), broadcast = false)
      }
    }
  }

  test("does not broadcast with an indicator, or with floating-point keys") {
    withAdaptive {
      check(
        multiJoin(
          Seq(large, small(1)),
          Seq("k"),
          roles = Seq("required", "optional"),
          indicator = "found"),
        broadcast = false)
      def floats(df: DataFrame) = df.withColumn("k", col("k").cast("double"))
      check(join("required", "optional")(floats(large), floats(small(1))), broadcast = false)
    }
  }
}
