package io.github.skewext.join.optimizer

import io.github.skewext.join.InputRole.{Excluded, Optional, Required}
import io.github.skewext.join.{InputRole, MultiFullJoin}
import io.github.skewext.platform.SkewConf
import io.github.skewext.{AsOf, Joins, MultiJoinTest}

import org.apache.spark.sql.catalyst.expressions.{Expression, PythonUDF, SubqueryExpression}
import org.apache.spark.sql.catalyst.plans.logical.{BaseEvalPython, Filter, Join, LogicalPlan}
import org.apache.spark.sql.catalyst.plans.{LeftAnti, LeftSemi}
import org.apache.spark.sql.connector.catalog.InMemoryTableCatalog
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.functions._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.{SparkShims, TestShims}
import org.apache.spark.sql.types.LongType
import org.apache.spark.sql.{DataFrame, QueryTest, Row}

/**
 * Predicates above a join: their effect on the inputs' roles, and the inputs and files that they
 * reach. The answers of many predicates are compared at once, in a union.
 */
class PushdownSuite extends MultiJoinTest {

  /** Keys with nulls and duplicates. Column v is never null, and w may be. */
  private def input(i: Int): DataFrame = {
    def orNull(isNull: Boolean, value: Int) = if (isNull) "null" else s"${value}L"
    val rows = (0 until 24).map { id =>
      val k = orNull(id % 5 == 0, id * (i + 1) % 7)
      s"($k, ${orNull(id % 7 == i, id % 2)}, ${id + 100 * i}L, ${orNull(id % 3 == 0, id % 4)})"
    }
    table(s"k, l, v$i, w$i", rows.mkString(", "))
  }

  private def inputs: Seq[DataFrame] = (0 until 3).map(input)

  private def full: DataFrame = fullJoin("k", "l")(inputs: _*)

  /** The multi-way join of the optimized plan. */
  private def node(df: DataFrame): MultiFullJoin =
    df.queryExecution.optimizedPlan
      .collectFirst { case j: MultiFullJoin => j }
      .getOrElse(fail(s"no multi-way join in ${df.queryExecution.optimizedPlan}"))

  private def roles(df: DataFrame): Seq[InputRole] = node(df).roles

  private def conditionsAbove(df: DataFrame): Seq[Expression] = df.queryExecution.optimizedPlan
    .collect { case f @ Filter(_, _) if f.exists(_.isInstanceOf[MultiFullJoin]) => f.condition }

  /** The filters of each input, as SQL. */
  private def asked(df: DataFrame): Seq[String] =
    node(df).children.map(_.collect { case f: Filter => f.condition.sql }.mkString(" AND "))

  private def checkFiltered(joined: DataFrame, predicates: Seq[String]): Unit = {
    val all = predicates.map(p => joined.where(p).withColumn("predicate", lit(p)))
    assert(checkSame(all.reduce(_ union _)).nonEmpty)
  }

  test("makes an input required if a predicate rejects its nulls", Slow) {
    val narrowed = Seq(
      "v0 > 5" -> Seq(Required, Optional, Optional),
      "w1 IS NOT NULL" -> Seq(Optional, Required, Optional),
      "v0 + 100 > v1" -> Seq(Required, Required, Optional),
      "v0 > k AND w2 < 3" -> Seq(Required, Optional, Required),
      "w1 > 2 OR w1 = 1 AND v2 > 107" -> Seq(Optional, Required, Optional),
      "NOT (w1 = 3)" -> Seq(Optional, Required, Optional),
      "w1 <=> 3" -> Seq(Optional, Required, Optional),
      "w2 IN (1, 2, NULL)" -> Seq(Optional, Optional, Required),
      "CASE WHEN v1 > 103 THEN w2 IS NULL END" -> Seq(Optional, Required, Optional),
      "if(v2 > 200, k, NULL) > 2" -> Seq(Optional, Optional, Required),
      "v0 > 5 AND v1 > 105 AND v2 > 205" -> Seq(Required, Required, Required))
    for ((predicate, expected) <- narrowed) withClue(s"$predicate: ") {
      assert(roles(full.where(predicate)) === expected)
    }
    checkFiltered(full, narrowed.map(_._1))
    val shown = multiJoin(inputs, Seq("k", "l"), indicator = "i")
    assert(roles(shown.where("v0 > 5")) === Seq(Required, Optional, Optional))
    checkFiltered(shown, narrowed.map(_._1).take(4))
  }

  test("keeps the roles if predicates accept nulls", Slow) {
    val left = Seq(
      "w1 IS NULL OR w1 > 2",
      "w1 > 2 OR v2 > 207",
      "coalesce(w1, w2) > 2",
      "coalesce(v1, 0) < 110",
      "w1 <=> w2",
      "w1 IS NULL",
      "NOT (w1 <=> 3)",
      "CASE WHEN v1 > 103 THEN false ELSE true END",
      "if(v2 > 200, k, 5) > 2")
    for (predicate <- left) withClue(s"$predicate: ") {
      val filtered = full.where(predicate)
      assert(roles(filtered) === Seq(Optional, Optional, Optional))
      assert(conditionsAbove(filtered).size === 1)
      assert(asked(filtered).forall(_.isEmpty))
    }
    checkFiltered(full, left)
    assert(roles(full.where("coalesce(w1, rand(1)) > 0.5")) === Seq(Optional, Optional, Optional))
  }

  test("makes an input excluded if a column that is never null must be null", Slow) {
    val anti = full.where("v1 IS NULL")
    assert(roles(anti) === Seq(Optional, Excluded, Optional))
    assert(conditionsAbove(anti).isEmpty)
    assert(node(anti).children(1).output.map(_.name) === Seq("k", "l"))
    assert(anti.columns === full.columns)
    val both = full.where("v0 IS NOT NULL AND v2 IS NULL")
    assert(roles(both) === Seq(Required, Optional, Excluded))
    checkFiltered(
      full,
      Seq(
        "v1 IS NULL",
        "v0 IS NOT NULL AND v2 IS NULL",
        "v0 IS NULL AND v1 IS NULL",
        "v1 <=> NULL"))
    checkFiltered(
      multiJoin(inputs, Seq("k", "l"), indicator = "i"),
      Seq("v1 IS NULL", "v0 IS NULL"))
    // A filter of the input excludes nulls of a nullable column.
    val filtered = fullJoin("k")(input(0), input(1).where("w1 > 0"))
    assert(roles(filtered.where("w1 IS NULL")) === Seq(Optional, Excluded))
    checkFiltered(filtered, Seq("w1 IS NULL"))
    assert(roles(fullJoin("k")(input(0), input(1)).where("w1 IS NULL")) === Seq(Optional, Optional))
    val none = full.where("v0 IS NULL AND v1 IS NULL AND v2 IS NULL")
    assert(none.queryExecution.optimizedPlan.maxRows === Some(0), "all inputs are excluded")
    assert(checkSame(none).isEmpty)
    assert(checkSame(full.where("v0 IS NULL AND w0 = 1")).isEmpty, "it contradicts itself")
  }

  test("narrows roles by predicates on a marker of presence") {
    // The rewrite of a SQL chain creates such an expression for the key of one table.
    val marked = fullJoin("k")(input(0), input(1).withColumn("here", lit(true)))
    def ofOne(predicate: String) =
      marked.withColumn("k1", expr("if(here, k, NULL)")).where(predicate)
    assert(roles(ofOne("k1 = 3")) === Seq(Optional, Required))
    assert(asked(ofOne("k1 = 3")).forall(_.contains("= 3L")))
    assert(conditionsAbove(ofOne("k1 = 3")).isEmpty)
    assert(roles(ofOne("k1 IS NOT NULL")) === Seq(Optional, Required))
    // The key is also null for null keys of the input, if the join returns them.
    assert(roles(ofOne("k1 IS NULL")) === Seq(Optional, Optional))
    assert(roles(ofOne("k1 IS NULL AND v0 IS NOT NULL")) === Seq(Required, Excluded))
    checkFiltered(
      marked.withColumn("k1", expr("if(here, k, NULL)")),
      Seq("k1 = 3", "k1 IS NOT NULL", "k1 IS NULL", "k1 IS NULL AND v0 IS NOT NULL"))
  }

  test("pushes predicates on a required input into that input") {
    val own = full.where("v0 > 5 AND v1 > 103 AND v0 + k > 7 AND v0 + 100 < v1")
    assert(conditionsAbove(own).map(_.references.map(_.name).toSet) === Seq(Set("v0", "v1")))
    assert(asked(own)(0).contains("> 5L") && asked(own)(0).contains("> 7L"))
    assert(asked(own)(1).contains("> 103L") && !asked(own)(1).contains("> 5L"))
    assert(!asked(own)(2).contains("> 5L") && !asked(own)(2).contains("> 103L"))
    checkFiltered(
      full,
      Seq("v0 > 5 AND v1 > 103 AND v0 + k > 7 AND v0 + 100 < v1", "v0 > 5 AND w0 IS NULL"))
    // A key that equals the input's key may differ from it.
    val zeros =
      fullJoin("k")(table("k, a", "(-0.0d, 1), (1.0d, 2)"), table("k, b", "(0.0d, 1), (2.0d, 2)"))
    val negative = zeros.where("b < 3 AND concat(cast(k AS string), b) = '-0.01'")
    assert(roles(negative) === Seq(Optional, Required))
    assert(conditionsAbove(negative).size === 1)
    assert(checkJoin(negative).size === 1)
  }

  test("keeps predicates above the join that may fail for keys that the join drops") {
    val a = table("k, va", "(1, 1)")
    val b = table("k, vb", "(0, 7)")
    val c = table("k, vc", "(1, 9)")
    withSQLConf(SQLConf.ANSI_ENABLED.key -> "true") {
      for (predicate <- Seq(
          "va > 0 AND 100 / k > 5",
          "va > 0 AND (100 / k > 5 OR 100 / k > 6 AND vc > 1)"))
        checkAnswer(fullJoin("k")(a, b, c).where(predicate), Row(1, 1, null, 9))
      assert(asked(fullJoin("k")(a, b, c).where("100 / k > 5")).forall(!_.contains("/")))
      for ((predicate, part) <- Seq(
          "k > 0" -> ">",
          "k % 10 = 3" -> "%",
          "pmod(k, 10L) = 3" -> "pmod"))
        assert(asked(fullJoin("k")(a, b, c).where(predicate)).forall(_.contains(part)), predicate)
      assert(asked(fullJoin("k")(a, b, c).where("k % (k - 1) = 3")).forall(!_.contains("%")))
      val dated = Seq("x", "y").map(v => table(s"s, d, $v", "('a', DATE'2024-01-01', 1)"))
      for (predicate <- Seq(
          "year(d) = 2024",
          "trunc(d, 'MM') = d",
          "d = TIMESTAMP'2024-01-01 00:00:00'",
          "s LIKE 'a_%b'",
          "trim(s) = 'a'",
          "concat(s, 'b') = 'ab'"))
        assert(asked(fullJoin("s", "d")(dated: _*).where(predicate)).forall(_.nonEmpty), predicate)
    }
    withSQLConf(SQLConf.ANSI_ENABLED.key -> "false") {
      val df = fullJoin("k")(a, b, c).where("100 / k > 5")
      checkAnswer(df, Row(1, 1, null, 9))
      assert(asked(df).forall(_.contains("/")))
    }
  }

  test("adds the predicates that a disjunction implies for keys and inputs") {
    val predicate = "(k = 1 AND v0 > 10) OR (k = 3 AND v1 < 115)"
    val either = full.where(predicate)
    assert(roles(either) === Seq(Optional, Optional, Optional))
    assert(conditionsAbove(either).size === 1)
    assert(asked(either).forall(p => p.contains("= 1L") && p.contains("= 3L")))
    val required = full.where("(w0 = 1 AND v1 > 103) OR (w0 = 2 AND v2 < 215)")
    assert(asked(required).map(_.contains("OR")) === Seq(true, false, false))
    // One part of the disjunction has no predicate on the key.
    assert(asked(full.where("(k = 1 AND v0 > 10) OR v1 < 115")).forall(_.isEmpty))
    checkFiltered(full, Seq(predicate, "(w0 = 1 AND v1 > 103) OR (w0 = 2 AND v2 < 215)"))
    withSQLConf("spark.sql.constraintPropagation.enabled" -> "false") {
      checkFiltered(full, Seq(predicate))
    }
  }

  test("adds the predicates on a required input's keys to the others") {
    val some = Seq(input(0).where("k > 2"), input(1), input(2))
    def of(roles: String*) = multiJoin(some, Seq("k", "l"), roles = roles)
    assert(asked(of("required", "optional", "excluded")).forall(_.contains("> 2L")))
    assert(
      asked(of("optional", "required", "optional")).map(_.contains("> 2L")) ===
        Seq(true, false, false))
    assert(
      asked(of("optional", "optional", "optional")).map(_.contains("> 2L")) ===
        Seq(true, false, false))
    for (roles <- Seq("required, optional, excluded", "required, required, optional")) {
      assert(checkJoin(of(roles.split(", "): _*)).nonEmpty)
    }
    val floats = some.map(_.withColumn("k", col("k").cast("double")))
    val left = multiJoin(floats, Seq("k", "l"), roles = Seq("required", "optional", "optional"))
    assert(!asked(left)(1).contains("> 2"))
    checkJoin(left)
  }

  test("pushes a key predicate with a scalar subquery into every input, but not with IN") {
    input(2).createOrReplaceTempView("other")
    val scalar = full.where("k = (SELECT min(k) FROM other)")
    assert(conditionsAbove(scalar).isEmpty)
    assert(
      node(scalar).children.forall(_.exists(_.expressions.exists(SubqueryExpression.hasSubquery))))
    assert(checkJoin(scalar).nonEmpty)
    val in = full.where("k IN (SELECT w2 FROM other WHERE v2 > 205)")
    assert(roles(in) === Seq(Optional, Optional, Optional))
    assert(checkJoin(in).nonEmpty)
  }

  /** Whether each input has one of Spark's semi and anti joins. */
  private def semiJoined(df: DataFrame): Seq[Boolean] = node(df).children.map(_.exists {
    case j: Join => Seq(LeftSemi, LeftAnti).contains(j.joinType)
    case _ => false
  })

  private val leftRoles = Seq("required", "optional", "excluded")

  test("pushes semi and anti joins into a required input", Slow) {
    val other = input(3).where("v3 % 3 > 0").selectExpr("v3 - 300 AS x", "w3 AS y")
    val left = multiJoin(inputs, Seq("k", "l"), roles = leftRoles)
    for (how <- Seq("left_semi", "left_anti")) withClue(s"$how: ") {
      for (on <- some(2, Seq("v0 = x", "k = y", "w0 = y AND v0 <> x", "k = y AND w0 < x")))
        withClue(on) {
          val moved = left.join(other, expr(on), how)
          assert(semiJoined(moved) === Seq(true, false, false))
          assert(checkJoin(moved).nonEmpty)
        }
      // Conditions on an optional input, on two inputs, and on none.
      for (on <- some(1, Seq("v1 - 100 <=> x", "v0 = x AND v1 > y + 100", "x > 5"))) withClue(on) {
        val stays = left.join(other, expr(on), how)
        assert(semiJoined(stays) === Seq(false, false, false))
        checkSame(stays)
      }
      val hinted = left.join(other.hint("skewext_join", "adaptive"), expr("v0 = x"), how)
      val byHand = left.join(broadcast(other), expr("v0 = x"), how)
      assert(semiJoined(byHand) === Seq(true, false, false))
      assert(semiJoined(hinted) === Seq(false, false, false))
      checkJoin(hinted)
      checkJoin(byHand)
      assert(semiJoined(full.join(other, expr("k = y"), how)) === Seq(false, false, false))
    }
    // A semi join that has no match without an input makes it required.
    val narrowed = left.join(other, expr("v1 - 100 = x"), "left_semi")
    assert(semiJoined(narrowed) === Seq(false, true, false))
    checkJoin(narrowed)
    // The larger of two inputs that have the columns.
    val large = input(0).union(input(0)).union(input(0))
    val two = multiJoin(Seq(input(1), large), Seq("k", "l"), roles = Seq("required", "required"))
    val semi = two.join(other, expr("k = y"), "left_semi")
    assert(semiJoined(semi) === Seq(false, true))
    assert(checkJoin(semi).nonEmpty)
  }

  test("pushes a semi join without the sizes of tables that are not scanned yet") {
    withSQLConf("spark.sql.catalog.v2" -> classOf[InMemoryTableCatalog].getName) {
      // In tests, Spark rejects a request for the size of such a table.
      for (i <- Seq(0, 1)) {
        input(i).writeTo(s"v2.t$i").create()
      }
      val other = input(3).selectExpr("w3 AS y")
      for (sources <- Seq(
          Seq(spark.table("v2.t0"), input(1)),
          Seq(input(0), spark.table("v2.t1")))) {
        val two = multiJoin(sources, Seq("k", "l"), roles = Seq("required", "required"))
        val semi = two.join(other, expr("k = y"), "left_semi")
        assert(semiJoined(semi) === Seq(true, false))
        assert(checkJoin(semi).nonEmpty)
      }
    }
  }

  test("pushes a predicate with a subquery into one required input", Slow) {
    input(3).createOrReplaceTempView("other")
    val left = multiJoin(inputs, Seq("k", "l"), roles = leftRoles)
    for (predicate <- Seq(
        "v0 IN (SELECT v3 - 300 FROM other WHERE w3 > 0)",
        "k IN (SELECT w3 FROM other)",
        "k NOT IN (SELECT w3 FROM other WHERE w3 IS NOT NULL)",
        "EXISTS (SELECT 1 FROM other WHERE other.w3 = v0 AND other.v3 > 305)",
        "NOT EXISTS (SELECT 1 FROM other WHERE other.w3 = t.k)")) withClue(predicate) {
      left.createOrReplaceTempView("t")
      val filtered = spark.sql(s"SELECT * FROM t WHERE $predicate")
      assert(semiJoined(filtered) === Seq(true, false, false))
      assert(conditionsAbove(filtered).isEmpty)
      checkJoin(filtered)
    }
    left.createOrReplaceTempView("t")
    for (predicate <- Seq(
        "v1 IN (SELECT v3 - 200 FROM other)",
        "v0 + v1 IN (SELECT v3 FROM other)")) withClue(predicate) {
      val filtered = spark.sql(s"SELECT * FROM t WHERE $predicate")
      assert(!semiJoined(filtered).head)
      checkJoin(filtered)
    }
  }

  test("a correlated subquery over the view of an input", Slow) {
    // A regression on Spark 3.5: the view has one alias inside and outside of the subquery.
    val (a, b) = (table("x, v", "(1, 1), (2, 2), (3, 3)"), table("x, w", "(1, 1), (2, 2)"))
    val computed = Seq(a, b).map(_.withColumn("k", col("x") + 1).drop("x"))
    // An alias that Spark does not move.
    val exploded =
      Seq(a, b).map(_.withColumn("k", explode(array(col("x"), col("x") + 10))).drop("x"))
    for ((views, hints) <- Seq((computed, false), (exploded, false), (exploded, true)))
      withTempView("a", "b", "c", "joined") {
        for ((view, name) <- (views :+ views.last.withColumnRenamed("w", "u"))
            .zip(Seq("a", "b", "c")))
          view.createOrReplaceTempView(name)
        val inputs = if (hints) views.updated(1, broadcast(views(1))) else views
        multiJoin(inputs, Seq("k"), roles = Seq("required", "optional"))
          .createOrReplaceTempView("joined")
        val chain = """(SELECT a.k, a.v, x.w FROM a
        |LEFT JOIN (SELECT k, w, u FROM b FULL JOIN c USING (k)) x ON a.k = x.k)""".stripMargin
        withSQLConf(
          SQLConf.OPTIMIZER_EXCLUDED_RULES.key -> "",
          SkewConf.MULTI_JOIN_REWRITE.key -> "true") {
          for (source <- Seq("joined", chain); exists <- Seq("EXISTS", "NOT EXISTS")) {
            val df = spark.sql(
              s"SELECT * FROM $source s WHERE $exists (SELECT 1 FROM a WHERE a.k = s.k AND a.v > 2)")
            assertSameRows(df.collect().toSeq, rowsWhenOff(df), s"$source, $exists")
          }
        }
      }
  }

  private def scans(df: DataFrame): Seq[FileSourceScanExec] =
    collect(df.queryExecution.executedPlan) { case s: FileSourceScanExec => s }

  test("pushes predicates on keys to row groups, partitions and buckets of every table", Slow) {
    val dataOf = inputs.zipWithIndex
    withTable(dataOf.flatMap { case (_, i) => Seq(s"rows$i", s"parts$i", s"buckets$i") }: _*) {
      for ((df, i) <- dataOf) {
        df.write.saveAsTable(s"rows$i")
        df.write.partitionBy("k").saveAsTable(s"parts$i")
        df.coalesce(1).write.bucketBy(4, "k").saveAsTable(s"buckets$i")
      }
      def joined(name: String, on: String*) =
        fullJoin(on: _*)((0 until 3).map(i => spark.table(s"$name$i")): _*)
      val rows = joined("rows", "k", "l")
      for ((predicate, pushed) <- Seq(
          "k = 4" -> "EqualTo(k,4)",
          "k IN (1, 2)" -> "In(k, [1,2])",
          "k BETWEEN 2 AND 5" -> "GreaterThanOrEqual(k,2)",
          "k IS NULL" -> "IsNull(k)",
          "l IS NOT NULL" -> "IsNotNull(l)",
          "k = 4 OR l = 1" -> "Or(EqualTo(k,4),EqualTo(l,1))",
          "k = 1 AND l = 0" -> "EqualTo(l,0)",
          "k <=> 4" -> "EqualNullSafe(k,4)")) withClue(s"$predicate: ") {
        val found = scans(rows.where(predicate)).map(_.metadata("PushedFilters"))
        assert(found.size === 3 && found.forall(_.contains(pushed)))
      }
      checkFiltered(rows, Seq("k = 4", "k BETWEEN 2 AND 5 AND l = 1", "k IS NULL"))

      val parts = joined("parts", "l", "k").where("k = 4 AND v0 > 3")
      checkSame(parts)
      assert(scans(parts).size === 3)
      for (scan <- scans(parts)) {
        assert(scan.metadata("PartitionFilters").contains("= 4)"))
        assert(scan.relation.location.listFiles(scan.partitionFilters, Nil).size === 1)
      }

      val buckets = joined("buckets", "k").where("k = 4")
      checkSame(buckets)
      assert(exchanges(buckets).isEmpty)
      assert(
        scans(buckets).map(_.metadata("SelectedBucketsCount")) ===
          Seq.fill(3)("1 out of 4"))
      // Buckets are hashed, so each may contain keys of a range.
      assert(
        scans(joined("buckets", "k").where("k > 4"))
          .map(_.metadata("SelectedBucketsCount")) === Seq.fill(3)("4 out of 4"))
    }
  }

  test("pushes predicates through joins of joins and projections") {
    val inner = fullJoin("k")(input(0), input(1).select("k", "v1"))
      .select(col("k").as("id"), (col("v0") + 1).as("x"), col("v1"))
    val outer = multiJoin(Seq(inner, input(2)), Seq("id"), Seq(Seq("id"), Seq("k")))
    val filtered = outer.where("id = 3 AND x > 4")
    val joins = filtered.queryExecution.optimizedPlan.collect { case j: MultiFullJoin => j }
    assert(joins.map(_.roles) === Seq(Seq(Required, Optional), Seq(Required, Optional)))
    assert(conditionsAbove(filtered).isEmpty)
    assert(asked(filtered).forall(_.contains("= 3L")))
    assert(QueryTest.sameRows(rowsWhenOff(filtered), filtered.collect().toSeq).isEmpty)
    // As with left joins: the join above implies that v0 is not null.
    val above = fullJoin("k")(input(0), input(1)).join(input(2), expr("v0 + 200 = v2"))
    assert(roles(above) === Seq(Required, Optional))
    checkJoin(above)
  }

  /** A column that a Python function computes. The plan of it is made, but it cannot run. */
  private def f(column: String) = {
    val batched = 100
    val arguments = Seq(SparkShims.expression(col(column)))
    TestShims.column(PythonUDF("f", null, LongType, arguments, batched, udfDeterministic = true))
  }

  private def calls(plan: LogicalPlan): Seq[Int] =
    plan.collect { case e: BaseEvalPython => e.udfs.size }

  test("evaluates a Python function once, if a predicate is on the key that it computes") {
    val computed = input(0).select(f("l").as("k"), col("v0"))
    val plain = input(1).select("k", "v1")
    for (roles <- Seq(Seq("optional", "optional"), Seq("required", "required")))
      for (predicate <- Seq(
          "k = 5",
          "k > 2 AND v1 > 3",
          "k = 1 AND v1 > v0 OR k = 3 AND v1 < v0")) {
        val df = multiJoin(Seq(computed, plain), Seq("k"), roles = roles).where(predicate)
        val below = node(df).children
        withClue(s"$roles, $predicate: $below") {
          assert(calls(below.head) === Seq(1))
          // The rows are filtered before they are shuffled, nonetheless.
          assert(asked(df).forall(_.contains("k")), below)
          assert(below.head.collect { case filter: Filter => filter }.nonEmpty)
        }
      }
    // The predicate is on a plain key, and goes to the scan.
    val beside = fullJoin("k")(input(0).select(col("k"), f("l").as("v0")), plain).where("k = 5")
    assert(asked(beside).forall(_.contains("k = 5L")))
    // One on the spine goes to the versions, too.
    val versions = computed.select(col("k"), col("v0").as("at"))
    val spine = input(1).where("k > 2")
    val asOf = Joins.asOfJoin(spine, Seq(AsOf.of(versions, "at")), Seq("k"), "v1", "left", None)
    assert(calls(asOf.queryExecution.optimizedPlan) === Seq(1))
  }

  test("evaluates a Scala function once, if a predicate is on the key that it computes") {
    val called = spark.sparkContext.longAccumulator
    val f = udf { (l: Long) =>
      called.add(1)
      l + 1
    }
    val computed = input(0).select(f(coalesce(col("l"), lit(0L))).as("k"), col("v0"))
    val df = fullJoin("k")(computed, input(1).select("k", "v1")).where("k >= 0 AND v1 IS NULL")
    df.collect()
    assert(called.value === input(0).count())
    checkSame(df)
  }

  test("evaluates a Python function once, if it computes a key that must not be null") {
    def inner(first: DataFrame) =
      multiJoin(Seq(first, input(1)), Seq("k"), roles = Seq("required", "required"))
    val computed = input(0).select(f("l").as("k"), col("v0"))
    val cases = Seq(
      computed,
      computed.where("v0 > 1"),
      computed.groupBy("k").agg(max("v0").as("v0")),
      computed.select(col("k").as("j"), col("v0")).select(col("j").as("k"), col("v0")))
    cases.foreach { first =>
      val joined = inner(first)
      val below = node(joined).children.head
      assert(below.collect { case e: BaseEvalPython => e.udfs.size } === Seq(1), below)
      assert(!asked(joined).head.contains("IS NOT NULL"), below)
      assert(asked(joined).last === "(t.k IS NOT NULL)")
    }
    val versions = computed.select(col("k"), col("v0").as("at"))
    val asOf = Joins.asOfJoin(input(1), Seq(AsOf.of(versions, "at")), Seq("k"), "v1", "left", None)
    val plan = asOf.queryExecution.optimizedPlan
    assert(plan.collect { case e: BaseEvalPython => e.udfs.size } === Seq(1), plan)
    val beside = inner(input(0).select(col("k"), f("l").as("v0")))
    assert(asked(beside) === Seq.fill(2)("(t.k IS NOT NULL)"))
  }
}
