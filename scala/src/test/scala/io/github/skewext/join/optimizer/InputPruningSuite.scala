package io.github.skewext.join.optimizer

import io.github.skewext.join.MultiFullJoin
import io.github.skewext.{AsOf, Joins, MultiJoinTest}

import org.apache.spark.sql.catalyst.expressions.{Attribute, ExpressionSet}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.execution.exchange.BroadcastExchangeLike
import org.apache.spark.sql.functions._
import org.apache.spark.sql.{Column, DataFrame, Row}

/**
 * Columns, rows and inputs that a query does not need, and the properties that the join reports.
 */
class InputPruningSuite extends MultiJoinTest {

  private def input(i: Int): DataFrame = {
    def orNull(isNull: Boolean, value: Int) = if (isNull) "null" else s"${value}L"
    val rows = (0 until 24).map { id =>
      val k = orNull(id % 5 == 0, id * (i + 1) % 7)
      s"($k, ${id + 100 * i}L, ${orNull(id % 3 == 0, id % 4)})"
    }
    table(s"k, v$i, w$i", rows.mkString(", "))
  }

  private def inputs: Seq[DataFrame] = (0 until 3).map(input)

  private def unique(i: Int): DataFrame = input(i).groupBy("k").agg(max(s"v$i").as(s"v$i"))

  private def join(inputs: DataFrame*)(roles: String*): DataFrame =
    multiJoin(inputs, Seq("k"), roles = roles)

  private def nodes(df: DataFrame): Seq[MultiFullJoin] =
    df.queryExecution.optimizedPlan.collect { case j: MultiFullJoin => j }

  private def node(df: DataFrame): MultiFullJoin = nodes(df) match {
    case Seq(one) => one
    case several => fail(s"${several.size} multi-way joins in ${df.queryExecution.optimizedPlan}")
  }

  private def readSchemas(df: DataFrame): Seq[String] =
    collect(df.queryExecution.executedPlan) { case s: FileSourceScanExec =>
      s.requiredSchema.catalogString
    }

  test("reads only used fields of structs", Slow) {
    withTempPath { dir =>
      val files = inputs.zipWithIndex.map { case (df, i) =>
        df.selectExpr(
          "k",
          s"if(v$i % 4 = 0, NULL, named_struct('a', v$i, 'b', named_struct('c', w$i, 'd', 'x'))) " +
            s"AS s$i",
          s"array(named_struct('e', v$i, 'f', 'y')) AS e$i")
          .write
          .parquet(s"$dir/$i")
        spark.read.parquet(s"$dir/$i")
      }
      val joined = fullJoin("k")(files: _*)
      def reads(df: DataFrame, expected: String*): Unit = {
        checkJoin(df)
        assert(readSchemas(df) === expected.map(columns => s"struct<$columns>"))
      }
      reads(
        joined.selectExpr("k", "s0.a", "s1.b.c", "e2.e"),
        "k:bigint,s0:struct<a:bigint>",
        "k:bigint,s1:struct<b:struct<c:bigint>>",
        "k:bigint,e2:array<struct<e:bigint>>")
      // The filter makes the first input required, and reads another field of it.
      reads(
        joined.where("s0.b.c > 1 AND coalesce(s1.a, 5) > 3").selectExpr("s1.b.d"),
        "k:bigint,s0:struct<b:struct<c:bigint>>",
        "k:bigint,s1:struct<a:bigint,b:struct<d:string>>",
        "k:bigint")
      reads(
        joined.groupBy("k").agg(sum("s2.a")),
        "k:bigint",
        "k:bigint",
        "k:bigint,s2:struct<a:bigint>")
      reads(
        joined.selectExpr("s0", "s0.a", "size(e1)"),
        "k:bigint,s0:struct<a:bigint,b:struct<c:bigint,d:string>>",
        "k:bigint,e1:array<struct<e:bigint,f:string>>",
        "k:bigint")
      // Also below Spark's joins, where projections are added and removed.
      val x = table("x", "(101L), (102L), (7L)")
      for (how <- Seq("left_semi", "left_anti", "left")) {
        reads(
          joined.join(x, joined("s1.a") === x("x"), how).select(joined("s0.b.c")),
          "k:bigint,s0:struct<b:struct<c:bigint>>",
          "k:bigint,s1:struct<a:bigint>",
          "k:bigint")
      }
      // The other side has the hidden key, too.
      withTempView("whole") {
        val others = table("k, v", "(1L, 2L), (2L, 7L), (3L, 3L)")
        fullJoin("k")(files.head, others).createOrReplaceTempView("whole")
        for (how <- Seq("SEMI", "ANTI")) {
          val itself =
            spark.sql(s"SELECT l.s0.a, l.v FROM whole l LEFT $how JOIN whole r ON l.v = r.k")
          assertSameRows(itself.collect().toSeq, rowsWhenOff(itself), s"Spark's rows, $how")
        }
      }
      // The other side has structs, too.
      val xs = x.selectExpr("named_struct('x', x, 'y', 1) AS xs")
      reads(
        joined.join(xs, joined("k") === xs("xs.x"), "left_anti").selectExpr("s0", "s1.a"),
        "k:bigint,s0:struct<a:bigint,b:struct<c:bigint,d:string>>",
        "k:bigint,s1:struct<a:bigint>",
        "k:bigint")
      // Keys that are structs are compared as a whole.
      val keyed = files.take(2).zipWithIndex.map { case (df, i) =>
        df.select(col(s"s$i").as("s"), col("k").as(s"k$i"))
      }
      val byStruct = fullJoin("s")(keyed: _*).selectExpr("s.a", "k1")
      checkJoin(byStruct)
      assert(readSchemas(byStruct).forall(_.contains("d:string")))
      withSQLConf("spark.sql.optimizer.nestedSchemaPruning.enabled" -> "false") {
        assert(readSchemas(again(joined.selectExpr("s0.a"))).head.contains("d:string"))
      }
    }
  }

  test("a field of a struct without nulls is null above an as-of join") {
    val spine = spark.sql("SELECT * FROM VALUES (1, 5), (2, 5) AS s(k, t)")
    val versions = spark.sql(
      "SELECT k, at, named_struct('a', v, 'b', struct(v AS c)) AS s FROM VALUES (1, 3, 7) AS x(k, at, v)")
    for (how <- Seq("left", "inner");
      of <- Seq(AsOf.of(versions, "at"), AsOf.of(versions, "at").ties(col("s")))) {
      val joined = Joins.asOfJoin(spine, Seq(of), Seq("k"), "t", how, None)
      for (query <- Seq(
          joined.where("s.a IS NULL").select("k"),
          joined.where("s.a IS NOT NULL").select("k"),
          joined.where("s.b.c IS NULL OR s.a = 7").select("k"),
          joined.selectExpr("k", "coalesce(s.a, -1)", "s.b.c <=> NULL"),
          joined.groupBy("s.a").agg(count("s.b.c")))) {
        withClue(query.queryExecution)(checkSame(query))
      }
    }
  }

  test("reads only used fields of structs below as-of joins and latest rows", Slow) {
    withTempPath { dir =>
      def fields(i: Int) = s"named_struct('a', v$i % 3, 'b', named_struct('c', w$i, 'd', 'x'), " +
        s"'e', v$i)"
      for (i <- 0 to 1) {
        val s = s"if(v$i % 4 = 0, NULL, ${fields(i)}) AS s$i"
        input(i).selectExpr("k", s"v$i % 5 AS t$i", s, s"v$i").write.parquet(s"$dir/$i")
      }
      val Seq(spine, versions) = (0 to 1).map(i => spark.read.parquet(s"$dir/$i"))
      def reads(df: DataFrame, expected: String*): Unit = withClue(df.queryExecution) {
        checkSame(df)
        assert(df.collect().nonEmpty && readSchemas(df) === expected.map(c => s"struct<$c>"))
      }
      def asOf(ties: Column*): DataFrame = {
        val of = AsOf.of(versions, "t1")
        val table = if (ties.isEmpty) of else of.ties(ties: _*)
        Joins.asOfJoin(spine, Seq(table), Seq("k"), "t0", "left", None)
      }
      val all = "s1:struct<a:bigint,b:struct<c:bigint,d:string>,e:bigint>"
      // A table's columns decide in their order which of several versions counts.
      reads(
        asOf().selectExpr("s0.b.c", "s1.a"),
        "k:bigint,t0:bigint,s0:struct<b:struct<c:bigint>>",
        "k:bigint,t1:bigint,s1:struct<a:bigint>")
      reads(
        asOf().where("s1.b.d = 'x' OR s0.a = 1").select("v0"),
        "k:bigint,t0:bigint,s0:struct<a:bigint>,v0:bigint",
        "k:bigint,t1:bigint,s1:struct<a:bigint,b:struct<c:bigint,d:string>>")
      reads(
        asOf().selectExpr("s1.a", "v1"),
        "k:bigint,t0:bigint",
        s"k:bigint,t1:bigint,$all,v1:bigint")
      reads(asOf().selectExpr("s1.a", "s1"), "k:bigint,t0:bigint", s"k:bigint,t1:bigint,$all")
      reads(
        asOf(col("v1")).groupBy("s1.b.c").agg(max("s1.e")),
        "k:bigint,t0:bigint",
        "k:bigint,t1:bigint,s1:struct<b:struct<c:bigint>,e:bigint>,v1:bigint")

      def latest(by: Column, ties: Column*): DataFrame =
        Joins.latest(versions, Seq("k"), Seq(by), Option(ties).filter(_.nonEmpty))
      reads(latest(col("t1")).selectExpr("k", "s1.a"), "k:bigint,t1:bigint,s1:struct<a:bigint>")
      reads(
        latest(col("t1").asc).where("s1.b.c IS NULL OR s1.b.c > 0").selectExpr("s1.a"),
        "k:bigint,t1:bigint,s1:struct<a:bigint,b:struct<c:bigint>>")
      reads(latest(col("t1")).selectExpr("s1.a", "s1 IS NULL"), s"k:bigint,t1:bigint,$all")
      reads(latest(col("t1")).selectExpr("v1", "s1.a"), s"k:bigint,t1:bigint,$all,v1:bigint")
      reads(latest(col("v1")).selectExpr("s1.e", "v1"), s"k:bigint,t1:bigint,$all,v1:bigint")
    }
  }

  test("reads only keys below count(*)") {
    val counted = fullJoin("k")(inputs: _*).groupBy().count()
    assert(node(counted).children.map(_.output.size) === Seq(1, 1, 1))
    checkJoin(counted)
  }

  test("removes the ORDER BY of an input") {
    def sorts(df: DataFrame): Int = df.queryExecution.optimizedPlan.collect { case s: Sort =>
      s
    }.size
    val (a, b) = (input(0), input(1))
    val sorted =
      fullJoin("k")(a.orderBy("v0"), b.orderBy("w1").where("v1 > 105").selectExpr("k", "v1"))
    assert(sorts(sorted) === 0)
    checkJoin(sorted)
    for (kept <- Seq(a.orderBy("v0", "k").limit(5), a.sortWithinPartitions("k"))) {
      val df = fullJoin("k")(kept, b)
      assert(sorts(df) === 1)
      checkJoin(df)
    }
    assert(sorts(fullJoin("k")(a, b).orderBy("k")) === 1)
    // Also in a chain of Spark's joins that is rewritten.
    withSQLConf("spark.skewext.multiJoin.rewrite.enabled" -> "true") {
      val chain = Seq(a, b.orderBy("v1"), input(2)).reduceLeft(_.join(_, Seq("k"), "full"))
      assert(sorts(chain) === 0 && nodes(chain).size === 1)
      checkJoin(chain)
    }
  }

  test("pushes a limit into the only required input if the others are optional", Slow) {
    def limits(df: DataFrame): Seq[Boolean] =
      node(df).children.map(_.exists(_.isInstanceOf[LocalLimit]))
    def check(df: DataFrame, limited: Seq[Boolean]): Unit = {
      val all = rowsWhenOff(df)
      for (some <- Seq(df.limit(4), df.select("k", "v0").limit(4))) {
        assert(limits(some) === limited)
        val rows = some.collect()
        assert(rows.length === math.min(4, all.size))
        val columns = some.columns.map(df.columns.indexOf(_))
        assert(rows.toSet.subsetOf(all.map(r => Row(columns.map(r.get).toSeq: _*)).toSet))
      }
    }
    for ((roles, limited) <- Seq(
        Seq("required", "optional", "optional") -> Seq(true, false, false),
        Seq("optional", "required", "optional") -> Seq(false, true, false),
        Seq("optional", "optional", "optional") -> Seq(false, false, false),
        Seq("required", "required", "optional") -> Seq(false, false, false),
        Seq("required", "optional", "excluded") -> Seq(false, false, false))) {
      check(join(inputs: _*)(roles: _*), limited)
    }
    // An input with few rows needs no limit. A filter above the join is below the limit.
    val few = join(input(0).limit(3), input(1))("required", "optional")
    assert(node(few.limit(4)).children.head.collect { case l: LocalLimit => l }.size <= 1)
    val filtered = join(input(0), input(1))("required", "optional").where("w1 IS NULL").limit(4)
    assert(limits(filtered) === Seq(false, false))
    assert(filtered.collect().length === 4)
  }

  test("removes inputs that are known to be empty") {
    val none = input(1).where("false")
    def isEmpty(df: DataFrame): Unit = {
      assert(df.queryExecution.optimizedPlan.maxRows === Some(0) && nodes(df).isEmpty)
      assert(checkSame(df).isEmpty)
    }
    isEmpty(join(input(0), none)("required", "required"))
    isEmpty(join(none, input(0))("required", "optional"))
    isEmpty(join(none, input(0))("optional", "excluded"))
    isEmpty(fullJoin("k")(none, input(0).limit(0)))
    isEmpty(join(join(none, input(0))("required", "optional"), input(2))("required", "optional"))

    val fewer = fullJoin("k")(input(0), none, input(2))
    assert(node(fewer).children.size === 2)
    assert(checkJoin(fewer).forall(_.isNullAt(3)))
    assert(
      node(join(input(0), none, input(2))("optional", "excluded", "required")).roles.size === 2)
    val alone = fullJoin("k")(none, input(0)).where("v0 > 3")
    assert(nodes(alone).isEmpty && exchanges(alone).isEmpty)
    assert(checkSame(alone).exists(_.isNullAt(0)))
    val anti = join(input(0), none)("required", "excluded")
    assert(nodes(anti).isEmpty)
    assert(checkSame(anti).size === 24)
    // The indicator contains the positions of inputs, so none is removed.
    val shown = multiJoin(Seq(none, input(0)), Seq("k"), indicator = "i")
    assert(node(shown).children.size === 2)
    assert(checkJoin(shown).forall(_.getSeq[Int](5) == Seq(1)))
    // The optimizer does not recognize this empty input.
    assert(node(join(input(0), input(1).where("w1 = 17"))("required", "required")).roles.size === 2)
  }

  test("an input that is empty at run time does not make the join small") {
    val threshold = "spark.sql.autoBroadcastJoinThreshold"
    withSQLConf("spark.sql.adaptive.enabled" -> "true", threshold -> "2000") {
      val keys = spark.range(0, 400, 1, 2).selectExpr("id % 300 AS k", "id AS v0")
      def optional(i: Int) = keys.selectExpr("k", s"v0 AS v$i")
      val none = optional(2).where(udf((v: Long) => v < 0).apply(col("v2")))
      val other = spark.range(0, 400, 1, 2).selectExpr("id AS v0", "id AS w")
      val df = fullJoin("k")(keys, optional(1), none).join(other, "v0")
      checkJoin(df)
      assert(operators(df).size === 1)
      val broadcasts = collect(df.queryExecution.executedPlan) { case e: BroadcastExchangeLike =>
        e
      }
      assert(broadcasts.isEmpty, df.queryExecution.executedPlan)
    }
  }

  test("skips the join if a required input is empty at run time", Slow) {
    // The join does not run, but the aggregate above it does.
    val none = input(1).where("w1 = 17")
    for (roles <- Seq(Seq("required", "required"), Seq("required", "excluded"))) {
      val joined = join(none, input(0))(roles: _*).groupBy("k").count()
      assert(operators(joined).size === 1)
      assert(joined.collect().isEmpty && rowsWhenOff(joined).isEmpty)
      assert(operators(joined).isEmpty, joined.queryExecution.executedPlan)
    }
    val some = join(input(0), none)("required", "optional")
    assert(checkJoin(some).size === 24)
    assert(checkJoin(join(input(0), none)("required", "excluded")).size === 24)
    withSQLConf("spark.sql.adaptive.enabled" -> "false") {
      assert(checkJoin(join(none, input(0))("required", "required")).isEmpty)
    }
  }

  test("removes inputs that only repeat rows if duplicates do not matter", Slow) {
    val left = join(inputs: _*)("required", "optional", "optional")
    def inputsLeft(df: DataFrame): Int = {
      checkSame(df)
      nodes(df).map(_.children.size).sum
    }
    assert(inputsLeft(left.select("k", "v0").distinct()) === 0)
    assert(inputsLeft(left.where("v0 > 3").groupBy("k").agg(max("v0"), min("w0"))) === 0)
    assert(inputsLeft(left.select("k", "v1").distinct()) === 2)
    assert(inputsLeft(left.groupBy("k").agg(countDistinct("v1"))) === 2)
    // Here duplicates matter, or the input determines keys.
    assert(inputsLeft(left.groupBy("k").agg(count("*"))) === 3)
    assert(inputsLeft(left.groupBy("k").agg(sum("v0"))) === 3)
    assert(inputsLeft(fullJoin("k")(inputs: _*).select("k", "v0").distinct()) === 3)
    assert(
      inputsLeft(join(inputs: _*)("required", "required", "excluded").select("k").distinct()) === 3)
    // An input with unique keys repeats no rows.
    val keyed = join(input(0), unique(1), input(2))("required", "optional", "optional")
    assert(inputsLeft(keyed.select("k", "v0", "v2")) === 2)
    assert(inputsLeft(keyed.select("k", "v0", "v1")) === 3)
    assert(inputsLeft(join(unique(1), unique(2))("required", "required").select("k", "v1")) === 2)
    // All inputs determine the value of this key, and the positions in the indicator.
    val floats = join(table("k, a", "(0.0d, 1), (1.0d, 2)"), table("k, b", "(-0.0d, 1)"))(
      "optional",
      "required")
    assert(inputsLeft(floats.select("k").distinct()) === 2)
    val shown =
      multiJoin(inputs, Seq("k"), roles = Seq("required", "optional", "optional"), indicator = "i")
    assert(inputsLeft(shown.select("k", "i").distinct()) === 3)
    assert(inputsLeft(shown.select("k", "v0").distinct()) === 0)
  }

  test("constant columns of optional inputs are null if the input lacks the key", Slow) {
    val marked = inputs.zipWithIndex.map { case (df, i) => df.withColumn(s"c$i", lit(i)) }
    val joined = join(marked: _*)("required", "optional", "optional")
    val used = joined.selectExpr("k", "c0", "c0 + 1 AS d", "c1", "coalesce(c2, -1) AS e")
    assert(checkJoin(used).exists(_.isNullAt(3)))
    val full = fullJoin("k")(marked: _*)
    checkJoin(full)
    assert(checkJoin(full.where("c1 IS NULL")).nonEmpty)
    assert(checkJoin(full.where("c0 = 0 AND c1 IS NULL").selectExpr("c0", "c1", "c2")).nonEmpty)
    assert(checkSame(full.where("c0 = 5")).isEmpty)
  }

  test("reports constraints that hold for every row") {
    // Spark removes filters that are known to hold, and no others.
    def filters(df: DataFrame): Int = {
      checkSame(df)
      df.queryExecution.optimizedPlan.collect {
        case f: Filter if f.exists(_.isInstanceOf[MultiFullJoin]) => f
      }.size
    }
    val positive = input(0).where("k > 2 AND w0 > 1")
    val left = join(positive, input(1))("required", "optional")
    def says(df: DataFrame, predicate: String): Boolean = {
      val condition = df
        .where(predicate)
        .queryExecution
        .analyzed
        .collectFirst { case Filter(condition, _) =>
          condition
        }
        .get
      val plan = df.queryExecution.optimizedPlan
      // Spark removes aliases of the same name, so ids differ.
      plan.constraints.contains(condition.transform { case a: Attribute =>
        plan.output.find(_.name == a.name).get
      })
    }
    assert(says(left, "k > 2L") && says(left, "w0 > 1L") && says(left, "k IS NOT NULL"))
    assert(!says(left, "v1 IS NOT NULL"))
    assert(filters(left.where("k > 2 AND w0 > 1")) === 0)
    val full = fullJoin("k")(positive, input(1).where("k > 2"))
    assert(says(full, "k > 2L") && !says(full, "w0 > 1L"))
    assert(!says(fullJoin("k")(positive, input(1)), "k > 2L"))
    assert(!says(fullJoin("k")(positive, input(1)), "k IS NOT NULL"))
    val nulls = fullJoin("k")(inputs: _*)
    assert(checkSame(nulls.where("k IS NOT NULL")).size < checkSame(nulls).size)
    assert(!says(join(inputs: _*)("required", "optional", "optional"), "k IS NOT NULL"))
    assert(says(join(inputs: _*)("required", "required", "optional"), "k IS NOT NULL"))
  }

  test("reports distinct keys only if each key is in one row", Slow) {
    def once(df: DataFrame): Boolean = {
      val join = node(df)
      checkSame(df.groupBy("k").count())
      checkSame(df.select("k").distinct())
      join.distinctKeys === Set(ExpressionSet(join.keyOutput))
    }
    def notNull(i: Int) = unique(i).where(col("k").isNotNull)
    assert(once(join(unique(0), unique(1))("required", "required")))
    assert(once(join(unique(0), input(1))("required", "excluded").where("k > 1")))
    // Several rows with a null key, and duplicate keys.
    assert(!once(join(unique(0), unique(1))("optional", "optional")))
    assert(!once(join(notNull(0), input(1))("required", "optional")))
    assert(!once(join(input(0), notNull(1))("required", "required")))
  }

  test("reads only the keys of excluded inputs, also below a filter") {
    withTempPath { dir =>
      val files = inputs.zipWithIndex.map { case (df, i) =>
        df.write.parquet(s"$dir/$i")
        spark.read.parquet(s"$dir/$i").withColumn(s"n$i", lit(1))
      }
      val all = (0 to 1).map(i => s"struct<k:bigint,v$i:bigint,w$i:bigint>")
      for (joined <- Seq(
          join(files: _*)("required", "optional", "excluded").where("v0 > v1"),
          // The filter makes the last input excluded.
          fullJoin("k")(files: _*).where("n2 IS NULL AND coalesce(v0, 0) > coalesce(v1, 0)"))) {
        checkJoin(joined)
        assert(readSchemas(joined) === all :+ "struct<k:bigint>")
      }
    }
  }
}
