package io.github.skewext.join

import scala.util.Random

import io.github.skewext.explain.{ExplainedJoin, Explainer, Origin}
import io.github.skewext.platform.SkewConf
import io.github.skewext.{MultiJoinTest, PythonApi}
import org.apache.logging.log4j.Level

import org.apache.spark.sql.catalyst.plans.logical.{HintInfo, NO_BROADCAST_HASH, ResolvedHint}
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec
import org.apache.spark.sql.functions._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.{SqlInternals, TestSessions}
import org.apache.spark.sql.{DataFrame, Row}

/** Join hints on the inputs of a multi-way join: done by Spark's own joins, or explained. */
class BroadcastHintsSuite extends MultiJoinTest {

  private val Threshold = SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key
  private val BySize = SkewConf.MULTI_JOIN_BROADCAST.key

  /** Nothing is broadcast by its size. */
  override protected def withAdaptive(body: => Unit): Unit =
    super.withAdaptive(withSQLConf(Threshold -> "-1")(body))

  /** Some keys several times, some null, some that others lack. */
  private def input(i: Int, rows: Int = 40): DataFrame = spark
    .range(0, rows.toLong, 1, 2)
    .select(
      when(col("id") % 11 =!= i, (col("id") * (i + 1)) % 50).as("k"),
      (col("id") + 100 * i).as(s"v$i"))

  private def hinted(i: Int): DataFrame = broadcast(input(i))

  private def join(roles: String*)(inputs: DataFrame*): DataFrame =
    multiJoin(inputs, Seq("k"), roles = roles)

  private def broadcasts(df: DataFrame): Int =
    collectWithSubqueries(df.queryExecution.executedPlan) { case j: BroadcastHashJoinExec =>
      j
    }.size

  /** The same rows as with skewext off, by so many broadcasts, shuffles and inputs of our operator. */
  private def check(df: DataFrame, broadcast: Int, shuffled: Int): Unit = {
    val rows = df.collect().toSeq
    val plan = df.queryExecution.executedPlan
    assert(broadcasts(df) === broadcast, plan)
    assert(exchanges(df).size === shuffled, plan)
    assert(operators(df).map(_.children.size).sum === shuffled, plan)
    assertSameRows(rows, rowsWhenOff(df), "the same query with skewext off")
  }

  private def explained(df: DataFrame): Seq[ExplainedJoin] =
    SqlInternals.withActive(df.sparkSession)(Explainer.explain(df.queryExecution)).joins

  /** One operator of all inputs, and why the hint of one of them is not used. */
  private def checkUnused(df: DataFrame, input: Int, reason: String): Unit = {
    check(
      df,
      broadcast = 0,
      shuffled = df.queryExecution.analyzed.collectFirst {
        case join: io.github.skewext.join.MultiFullJoin => join.children.size
      }.get)
    val Seq(join) = explained(df)
    assert(join.inputs(input).hint.exists(_.contains(reason)), join.inputs)
  }

  for (others <- Seq(
      Seq("optional", "optional"),
      Seq("optional", "excluded"),
      Seq("required", "optional"),
      Seq("required", "excluded"),
      Seq("required", "required"),
      Seq("excluded", "excluded"))) {
    test(s"hinted inputs are broadcast to a required one: ${others.mkString(", ")}") {
      withAdaptive {
        val inputs = Seq(input(0, 200), hinted(1), hinted(2))
        check(join("required" +: others: _*)(inputs: _*), broadcast = 2, shuffled = 0)
        check(
          join(others :+ "required": _*)(inputs.tail :+ inputs.head: _*),
          broadcast = 2,
          shuffled = 0)
      }
    }
  }

  test("Spark's chain with the same hints has the same rows, columns and shuffles") {
    withAdaptive {
      val inputs = Seq(input(0, 200), hinted(1), hinted(2))
      val df = join("required", "optional", "optional")(inputs: _*)
      val chain = inputs.reduceLeft(_.join(_, Seq("k"), "left"))
      assertSameRows(df.collect().toSeq, chain.collect().toSeq, "Spark's chain")
      assert(df.schema === chain.schema)
      assert(exchanges(chain).isEmpty && exchanges(df).isEmpty)
    }
  }

  test("explains the broadcasts with all inputs") {
    val Seq(one) =
      explained(join("required", "optional", "excluded")(input(0, 200), hinted(1), hinted(2)))
    assert(one.origin.status === Origin.AskedFor)
    assert(one.origin.text.contains("broadcast hint"))
    assert(one.title === "join of 3 inputs on [k]")
    assert(one.inputs.size === 3 && one.inputs.forall(_.hint.isEmpty))
  }

  test("one input small by its size, and one by its hint") {
    withAdaptive {
      withSQLConf(Threshold -> "1000", BySize -> "true") {
        val small = input(1, 20)
        val large = input(2, 400)
        val df = join("required", "optional", "optional")(input(0, 400), small, broadcast(large))
        check(df, broadcast = 2, shuffled = 0)
        val without = join("required", "optional", "optional")(input(0, 400), small, large)
        check(without, broadcast = 0, shuffled = 3)
      }
    }
  }

  test("all inputs are shuffled beside two large ones") {
    withAdaptive {
      val roles = Seq("required", "optional", "optional")
      val df = join(roles: _*)(input(0, 200), input(1, 200), hinted(2))
      checkUnused(df, 2, "another input is not broadcast")
    }
  }

  test("random roles and hints: the same rows as Spark's", Slow) {
    val allRoles = (1 to 4).foldLeft(Seq(Seq.empty[String])) { (found, _) =>
      found.flatMap(roles => Seq("required", "optional", "excluded").map(roles :+ _))
    }
    val cases = for {
      roles <- allRoles if roles.exists(_ != "excluded")
      hints <- 1 to 15
    } yield (roles, hints)
    withSQLConf(Threshold -> "-1") {
      var hinted = 0
      new Random(1).shuffle(cases).take(if (testAll) 120 else 12).foreach { case (roles, hints) =>
        withClue(s"$roles, hints $hints: ") {
          val df = join(roles: _*)(roles.indices.map { i =>
            val of = input(i, 10 + 5 * i)
            if ((hints & (1 << i)) == 0) of else broadcast(of)
          }: _*)
          checkSame(df)
          hinted += broadcasts(again(df))
        }
      }
      assert(hinted > 5)
    }
  }

  test("operators above and below: filters, a group-by of the key, a limit, another join", Slow) {
    withAdaptive {
      val df = join("required", "optional", "required")(input(0, 200), hinted(1), hinted(2))
      check(df.where("k > 10 AND v1 > 105"), broadcast = 2, shuffled = 0)
      checkAnswer(
        df.groupBy("k").agg(sum("v0"), sum("v1")),
        rowsWhenOff(df.groupBy("k").agg(sum("v0"), sum("v1"))))
      assert(df.limit(5).count() === 5)
      val above = join("required", "required")(df, input(3, 200))
      check(above, broadcast = 2, shuffled = 2)
      check(df.select("v2", "k"), broadcast = 2, shuffled = 0)
    }
  }

  test("an input of several key columns, under another name, of another type, and hinted twice") {
    withAdaptive {
      val other =
        input(1).select(col("k").cast("int").as("id"), (col("v1") % 3).as("n"), col("v1").as("w"))
      val df = multiJoin(
        Seq(input(0, 200).withColumn("n", col("v0") % 3), broadcast(broadcast(other).select("*"))),
        Seq("k", "n"),
        keys = Seq(Seq("k", "n"), Seq("id", "n")),
        roles = Seq("required", "optional"))
      check(df, broadcast = 1, shuffled = 0)
      // The same table twice.
      val twice = multiJoin(
        Seq(input(0), broadcast(input(0))),
        Seq("k"),
        roles = Seq("required", "optional"),
        suffixes = Seq("_a", "_b"))
      check(twice, broadcast = 1, shuffled = 0)
    }
  }

  test("a condition above may make the roles that a hint needs") {
    withAdaptive {
      val df = fullJoin("k")(input(0, 200), hinted(1), hinted(2))
      check(df.where("v0 > 3"), broadcast = 2, shuffled = 0)
      checkUnused(df, 1, "no other input is required")
    }
  }

  test("hints that the roles do not allow are explained") {
    withAdaptive {
      checkUnused(fullJoin("k")(input(0), hinted(1)), 1, "no other input is required")
      checkUnused(
        join("required", "optional")(hinted(0), input(1)),
        0,
        "no other input is required")
    }
  }

  test("hints that the key or the indicator do not allow are explained") {
    withAdaptive {
      val roles = Seq("required", "optional")
      checkUnused(
        multiJoin(Seq(input(0), hinted(1)), Seq("k"), roles = roles, indicator = "found"),
        1,
        "the indicator")
      def floats(df: DataFrame) = df.withColumn("k", col("k").cast("double"))
      checkUnused(join(roles: _*)(floats(input(0)), floats(hinted(1))), 1, "-0.0 and 0.0")
    }
  }

  test("does not broadcast the largest of required inputs that all have the hint") {
    withAdaptive {
      val large = broadcast(input(0, 200))
      val df = join("required", "required")(hinted(1), large)
      check(df, broadcast = 1, shuffled = 0)
      val Seq(built) = collect(df.queryExecution.executedPlan) { case j: BroadcastHashJoinExec =>
        j.right.output.map(_.name)
      }
      assert(built.contains("v1"))
    }
  }

  test("hints of other strategies are not used, and keep their input from being broadcast", Slow) {
    withAdaptive {
      withSQLConf(Threshold -> "1000000", BySize -> "true") {
        val roles = Seq("required", "optional")
        assert(broadcasts(join(roles: _*)(input(0, 200), input(1))) === 1)
        for (name <- Seq("merge", "shuffle_hash", "shuffle_replicate_nl")) {
          val reason = s"$name not used (one operator joins all inputs"
          checkUnused(join(roles: _*)(input(0, 200), input(1).hint(name)), 1, reason)
          checkUnused(join(roles: _*)(input(0, 200).hint(name), input(1)), 0, reason)
        }
        val noBroadcast = HintInfo(Some(NO_BROADCAST_HASH))
        def kept(df: DataFrame) =
          SqlInternals.dataFrame(spark, ResolvedHint(df.queryExecution.analyzed, noBroadcast))
        checkUnused(join(roles: _*)(input(0, 200), kept(input(1))), 1, "no_broadcast_hash")
        check(join(roles: _*)(kept(input(0, 200)), input(1)), broadcast = 1, shuffled = 0)
        val wanted = input(1).hint("skewext_join", "broadcast_map")
        check(join(roles: _*)(input(0, 200), wanted), broadcast = 1, shuffled = 0)
      }
      val wanted = input(1).hint("skewext_join", "broadcast_map")
      checkUnused(
        join("required", "optional")(input(0), wanted),
        1,
        "it is a hint for a join of two inputs")
    }
  }

  test("Spark warns once of a hint that is not used, and not of one that is") {
    def warnings(df: => DataFrame): Seq[String] = {
      val appender = new LogAppender("hints")
      // Another suite of the JVM may have switched the log off.
      withLogAppender(appender, level = Some(Level.WARN))(df.collect())
      appender.loggingEvents
        .map(_.getMessage.getFormattedMessage)
        .filter(_.contains("int"))
        .toSeq
        .filter(message => message.startsWith("Hint ") || message.contains("join hint"))
    }
    withAdaptive {
      val Seq(one) = warnings(fullJoin("k")(input(0), hinted(1), input(2)))
      assert(one.contains("strategy=broadcast") && one.contains("no other input is required"))
      assert(warnings(join("required", "optional")(input(0), hinted(1))).isEmpty)
    }
  }

  test("a hint does not keep a query from using cached data") {
    withAdaptive {
      def cachedScans(df: DataFrame) =
        collect(df.queryExecution.executedPlan) { case s: InMemoryTableScanExec => s }.size
      val roles = Seq("required", "optional")
      val small = input(1).cache()
      try {
        val df = join(roles: _*)(input(0, 200), broadcast(small))
        check(df, broadcast = 1, shuffled = 0)
        assert(cachedScans(df) === 1)
      } finally small.unpersist(blocking = true)
      val joined = join(roles: _*)(input(0), input(1)).cache()
      try {
        val same = join(roles: _*)(input(0), hinted(1))
        assert(cachedScans(same) === 1)
        checkAnswer(same, joined.collect().toSeq)
      } finally joined.unpersist(blocking = true)
    }
  }

  test("with chains rewritten, a hinted input is not joined by the operator above") {
    withAdaptive {
      withSQLConf(SkewConf.MULTI_JOIN_REWRITE.key -> "true") {
        val below = join("required", "optional")(input(0, 200), hinted(1))
        val df = below.join(input(2), Seq("k"), "full").join(input(3), Seq("k"), "full")
        check(df, broadcast = 1, shuffled = 3)
      }
    }
  }

  test("in a CTE that Spark computes once", Slow) {
    // A regression: another column took the place of the one that is read.
    val rows = table("k, v0", "(1, 1), (7, 2), (8, 3)")
    val once = table("k, v1", "(7, 5), (7, 6), (9, 6)").groupBy("k").agg(max("v1").as("v1"))
    val reads = Seq("y.r >= 0 AND y.r < 1 AS read", "y.v1 AS read", "y.v0 AS read")
    withSQLConf(SQLConf.OPTIMIZER_EXCLUDED_RULES.key -> "")(withTempView("j")(withAdaptive {
      for (second <- Seq(broadcast(once), once); read <- reads) {
        join("required", "optional")(rows, second).createOrReplaceTempView("j")
        val df = sql(s"""WITH x AS (SELECT *, rand() AS r FROM j)
          |SELECT x.k, $read FROM x JOIN x y ON x.k = y.k WHERE x.k > 5 AND y.k > 5""".stripMargin)
        assertSameRows(df.collect().toSeq, rowsWhenOff(df), "the same query with skewext off")
      }
    }))
  }

  test("hints in the queries of a table function") {
    withAdaptive {
      withTempView("f", "t", "u") {
        input(0, 200).createOrReplaceTempView("f")
        input(1).createOrReplaceTempView("t")
        hinted(2).createOrReplaceTempView("u")
        val df = sql("""
          SELECT * FROM skewext_multi_join(
            TABLE(f), TABLE(SELECT /*+ BROADCAST(t) */ * FROM t WHERE v1 > 3), TABLE(u),
            'k', 'left')""")
        check(df, broadcast = 2, shuffled = 0)
      }
    }
  }

  test("with skewext off, Spark's chain has the hints") {
    withSQLConf(Threshold -> "-1", Off) {
      val df = join("required", "optional", "optional")(input(0, 200), hinted(1), hinted(2))
      df.collect()
      assert(broadcasts(df) === 2 && exchanges(df).isEmpty, df.queryExecution.executedPlan)
    }
  }

  test("in a session that has registered the operator late") {
    val bare = TestSessions.withoutExtensions(spark)
    PythonApi.register(bare)
    bare.conf.set(Threshold, "-1")
    SqlInternals.withActive(bare) {
      def of(values: String, name: String) =
        bare.sql(s"SELECT * FROM VALUES $values AS t(k, $name)")
      val df = join("required", "optional")(
        of("(1, 2), (2, 3)", "v"),
        broadcast(of("(2, 4), (3, 5)", "w")))
      assert(df.collect().toSet === Set(Row(1, 2, null), Row(2, 3, 4)))
      assert(broadcasts(df) === 1 && exchanges(df).isEmpty, df.queryExecution.executedPlan)
    }
  }
}
