package io.github.skewext.join.optimizer

import io.github.skewext.MultiJoinTest
import io.github.skewext.join.MultiFullJoin
import io.github.skewext.platform.SkewConf

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.expressions.{Expression, IsNotNull, ScalaUDF}
import org.apache.spark.sql.catalyst.plans.logical.Filter
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.functions._
import org.apache.spark.sql.internal.SQLConf

/** The rules that change the plan around a join: their effect, their limits, and the answer. */
class RewritesSuite extends MultiJoinTest {

  private def input(i: Int): DataFrame = spark
    .range(0, 40, 1, 2)
    .select(
      when(col("id") % 3 =!= 0, (col("id") * (i + 1)) % 11).as("k"),
      when(col("id") % 7 =!= i, concat(lit("key "), col("id") % 5)).as("l"),
      (col("id") + 100 * i).as(s"v$i"))

  private def inputs: Seq[DataFrame] = (0 until 3).map(input)

  private def conditionsAbove(df: DataFrame): Seq[Expression] = df.queryExecution.optimizedPlan
    .collect { case f @ Filter(_, _) if f.exists(_.isInstanceOf[MultiFullJoin]) => f.condition }

  /** The number of filtered inputs. */
  private def filteredInputs(df: DataFrame): Int = df.queryExecution.optimizedPlan
    .collect { case j: MultiFullJoin => j }
    .flatMap(_.children)
    .count(_.exists(_.isInstanceOf[Filter]))

  private val allRoles = Seq(
    Seq("optional", "optional", "optional"),
    Seq("required", "optional", "excluded"),
    Seq("optional", "required", "optional"),
    Seq("excluded", "optional", "optional"))

  test("pushes predicates on keys into every input of any role", Slow) {
    val cases = for {
      predicate <- Seq(
        "k = 4",
        "k IN (1, 2)",
        "k > 3 AND l LIKE 'key%'",
        "k = 4 OR l = 'key 1'",
        "k IS NULL",
        "l IS NOT NULL",
        "k <=> 4",
        "coalesce(k, 5) = 5",
        "k + length(l) > 8")
      roles <- allRoles
    } yield (predicate, roles)
    for ((predicate, roles) <- covering(cases)) withClue(s"$predicate, $roles: ") {
      // In ANSI mode the sum may fail, and stays above.
      val ansi = SQLConf.get.ansiEnabled && !predicate.contains("+")
      withSQLConf(SQLConf.ANSI_ENABLED.key -> ansi.toString) {
        val filtered =
          multiJoin(inputs, Seq("k", "l"), roles = roles, indicator = "i").where(predicate)
        checkJoin(filtered)
        assert(conditionsAbove(filtered).isEmpty)
        assert(filteredInputs(filtered) === 3)
      }
    }
  }

  test("keeps other predicates above the join", Slow) {
    val joined = fullJoin("k", "l")(inputs: _*)
    for (predicate <- Seq(
        "v0 > 5 OR k = 4",
        "k <=> v1",
        "v0 > 5 OR v2 IS NULL",
        "k IS NULL OR rand(1) < 0.5")) {
      val filtered = joined.where(predicate)
      if (!predicate.contains("rand")) checkJoin(filtered)
      assert(conditionsAbove(filtered).size === 1, predicate)
      assert(filteredInputs(filtered) === 0, predicate)
    }
    val both = joined.where("k = 4 AND coalesce(v1, v2) > 3")
    checkJoin(both)
    assert(conditionsAbove(both).size === 1 && !conditionsAbove(both).head.sql.contains("k"))
    assert(filteredInputs(both) === 3)
  }

  test("keeps predicates on keys above the join if equal keys may differ") {
    val zeros =
      fullJoin("k")(table("k, a", "(-0.0d, 1), (1.0d, 2)"), table("k, b", "(0.0d, 1), (2.0d, 2)"))
    // In the inputs, the predicate would drop the zero of the second one and keep that of the
    // first.
    val negative = zeros.where("cast(k AS string) = '-0.0'")
    assert(checkJoin(negative).size === 1)
    assert(conditionsAbove(negative).size === 1)
    withTable("c3", "c5") {
      sql("CREATE TABLE c3 (k CHAR(3), a INT) USING parquet")
      sql("CREATE TABLE c5 (k CHAR(5), b INT) USING parquet")
      sql("INSERT INTO c3 VALUES ('a', 1)")
      sql("INSERT INTO c5 VALUES ('a', 2)")
      val padded = fullJoin("k")(spark.table("c3"), spark.table("c5")).where("length(k) = 3")
      assert(checkJoin(padded).size === 1)
      assert(conditionsAbove(padded).size === 1)
    }
  }

  test("does not push a user-defined function on the key into every input", Slow) {
    val even = udf((k: java.lang.Long) => k != null && k % 2 == 0)
    def callers(df: DataFrame): Int = {
      checkJoin(df)
      df.queryExecution.optimizedPlan
        .collect { case j: MultiFullJoin => j }
        .flatMap(_.children)
        .count(_.exists(_.expressions.exists(_.exists(_.isInstanceOf[ScalaUDF]))))
    }
    val full = fullJoin("k", "l")(inputs: _*)
    val above = full.where(even(col("k")))
    assert(callers(above) === 0 && conditionsAbove(above).size === 1)
    // Nor is a predicate with the function that a disjunction implies.
    assert(callers(full.where(even(col("k")) || (col("k") === 3 && col("v1") > 1))) === 0)
    // Other predicates are still pushed.
    val both = full.where(even(col("k")) && col("k") > 3)
    assert(callers(both) === 0 && filteredInputs(both) === 3)
    val roles = Seq("required", "optional", "required")
    assert(callers(multiJoin(inputs, Seq("k", "l"), roles = roles).where(even(col("k")))) === 1)
    val below = inputs.head.where(even(col("k"))) +: inputs.tail
    assert(callers(multiJoin(below, Seq("k", "l"), roles = roles)) === 1)
  }

  test("pushes predicates down to files") {
    withTempPath { dir =>
      val files = inputs.zipWithIndex.map { case (df, i) =>
        df.write.parquet(s"$dir/$i")
        spark.read.parquet(s"$dir/$i")
      }
      val filtered = fullJoin("k", "l")(files: _*).where("k = 4")
      checkJoin(filtered)
      val pushed = collect(filtered.queryExecution.executedPlan) { case s: FileSourceScanExec =>
        s.metadata("PushedFilters")
      }
      assert(pushed.size === 3 && pushed.forall(_.contains("EqualTo(k,4)")))
    }
  }

  test("filters null keys before the exchange if the join does not return them", Slow) {
    def filters(roles: String*): Seq[Boolean] = {
      val joined = multiJoin(inputs.take(roles.size), Seq("k", "l"), roles = roles)
      checkJoin(joined)
      joined.queryExecution.optimizedPlan
        .collectFirst { case j: MultiFullJoin => j }
        .get
        .children
        .map(_.exists {
          case f: Filter => f.condition.exists(_.isInstanceOf[IsNotNull])
          case _ => false
        })
    }
    assert(filters("optional", "optional", "optional") === Seq(false, false, false))
    assert(filters("required", "required") === Seq(true, true))
    assert(filters("required", "optional") === Seq(false, true))
    assert(filters("optional", "excluded") === Seq(false, true))
    assert(filters("required", "excluded", "optional") === Seq(false, true, true))
  }

  test("terminates without Spark's constraint propagation") {
    withSQLConf("spark.sql.constraintPropagation.enabled" -> "false") {
      val joined = multiJoin(inputs.take(2), Seq("k"), roles = Seq("required", "required"))
      checkJoin(joined.where("k > 2"))
      assert(joined.queryExecution.optimizedPlan.collect { case f: Filter => f }.size <= 4)
    }
  }

  private val Spread = SkewConf.MULTI_JOIN_SPREAD_NULL_KEYS.key

  private def nulls(i: Int): DataFrame = spark
    .range(0, 400, 1, 2)
    .select(when(col("id") % 20 === 0, col("id") * (i + 1)).as("k"), col("id").as(s"v$i"))

  /** The number of partitions of the result with null keys. */
  private def nullPartitions(df: DataFrame): Int = withoutCoalescing {
    val joined = again(df)
    val counts = joined.rdd.mapPartitions(rows => Iterator(rows.count(_.isNullAt(0)))).collect()
    assert(counts.sum === joined.where("k IS NULL").count())
    counts.count(_ > 0)
  }

  private def withoutCoalescing[T](body: => T): T = {
    var result: Option[T] = None
    withSQLConf("spark.sql.adaptive.coalescePartitions.enabled" -> "false") {
      result = Some(body)
    }
    result.get
  }

  private def spreads(df: DataFrame): Boolean = {
    df.collect()
    operators(df).exists(_.spreadNullKeys)
  }

  test("spreads rows with a null key over the tasks", Slow) {
    val joined = checkFullJoin("k")(nulls(0), nulls(1), nulls(2))
    assert(spreads(joined))
    inGeneratedCode(checkJoin(again(joined)))
    assert(exchanges(joined).size === 3)
    assert(nullPartitions(joined) === shufflePartitions)
    checkJoin(joined.where("v0 > 100").select("v0"))
    assert(spreads(joined.where("v0 > 100").select("v0")))
    assert(spreads(joined.sortWithinPartitions("v0")))
    assert(
      spreads(multiJoin(Seq(nulls(0), nulls(1)), Seq("k"), roles = Seq("required", "optional"))))
    // No operator above relies on the key's partitions, and an input has another partitioning.
    val other = nulls(1).groupBy("v1").agg(max("k").as("k"))
    for (df <- Seq(joined.hint("rebalance"), fullJoin("k")(nulls(0), other))) {
      checkJoin(df)
      assert(spreads(df))
    }
    withSQLConf(Spread -> "false") {
      assert(!spreads(again(joined)))
      assert(nullPartitions(joined) === 1)
    }
    withSQLConf("spark.sql.adaptive.enabled" -> "false")(assert(!spreads(again(joined))))
  }

  test(
    "does not spread null keys if an operator relies on their partition, or none are returned",
    Slow) {
    val joined = fullJoin("k")(nulls(0), nulls(1))
    def stays(df: DataFrame, numExchanges: Int): Unit = {
      checkJoin(df)
      assert(!spreads(df))
      assert(exchanges(df).size === numExchanges)
    }
    withSQLConf("spark.sql.autoBroadcastJoinThreshold" -> "-1") {
      stays(joined.groupBy("k").count(), 2)
      stays(joined.repartition(col("k")), 2)
      stays(joined.join(nulls(2), Seq("k"), "left"), 3)
      stays(joined.selectExpr("*", "count(*) OVER (PARTITION BY k) AS n"), 2)
      stays(fullJoin("k")(joined, nulls(2)), 3)
      stays(fullJoin("k")(nulls(0).repartition(4, col("k")), nulls(1)), 2)
      stays(fullJoin("k")(nulls(0).groupBy("k").agg(sum("v0")), nulls(1)), 2)
      stays(multiJoin(Seq(nulls(0), nulls(1)), Seq("k"), roles = Seq("required", "required")), 2)
      val neverNull = Seq(0, 1).map(i => nulls(i).select(col(s"v$i").as("v"), col("k").as(s"k$i")))
      stays(fullJoin("v")(neverNull: _*), 2)
    }
  }
}
