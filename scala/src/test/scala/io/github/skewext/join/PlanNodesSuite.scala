package io.github.skewext.join

import io.github.skewext.MultiJoinTest

import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan, Project}
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec
import org.apache.spark.sql.execution.{FileSourceScanExec, FormattedMode, SparkPlan}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.{DataFrame, Row}

/** The properties that plan nodes report to Spark, and their use by Spark. */
class PlanNodesSuite extends MultiJoinTest {

  private def a = table("k, v, x", "(1, 1, 'a'), (2, 2, 'b'), (null, 3, 'c')")
  private def b = table("k, w, y", "(2, 20, 'd'), (3, 30, 'e')")
  private def notNull(i: Int) =
    spark.range(0, 10, 1, 2).select((col("id") * (i + 1)).as("k"), col("id").as(s"v$i"))

  private def node(df: DataFrame): MultiFullJoin = node(df.queryExecution.optimizedPlan)

  private def node(plan: LogicalPlan): MultiFullJoin =
    plan.collectFirst { case join: MultiFullJoin => join }.get

  test("plans of one join have the same result, and plans of others do not") {
    val inputs = Seq(a, b)
    def plan(roles: Seq[String] = Nil, indicator: String = null, on: Seq[String] = Seq("k")) =
      multiJoin(inputs, on, roles = roles, indicator = indicator).queryExecution.optimizedPlan
    assert(plan().sameResult(plan()))
    assert(plan(indicator = "i").sameResult(plan(indicator = "i")))
    assert(!plan().sameResult(plan(indicator = "i")))
    assert(!plan().sameResult(plan(roles = Seq("required", "optional"))))
    assert(!plan().sameResult(multiJoin(inputs.reverse, Seq("k")).queryExecution.optimizedPlan))
    // The same key columns in another pairing.
    def paired(first: String, second: String) = multiJoin(
      Seq(a, b),
      Seq("k", "l"),
      Seq(Seq("k", "v"), Seq(first, second))).queryExecution.optimizedPlan
    assert(!paired("k", "w").sameResult(paired("w", "k")))
  }

  test("reuses exchanges of the same input, and of the same join") {
    withSQLConf("spark.sql.adaptive.enabled" -> "false") {
      val df = a
      def reused(query: DataFrame) = {
        checkJoin(query)
        query.queryExecution.executedPlan.collect { case r: ReusedExchangeExec => r }.size
      }
      assert(reused(fullJoin("k")(df, b, df.select("*"))) === 1)
      assert(reused(fullJoin("k")(df, b)) === 0)
      val grouped = fullJoin("k")(df, b).groupBy("w").agg(sum("v").as("s"))
      assert(reused(grouped.union(grouped)) === 1)
    }
  }

  test("uses a cached join only for queries with the same plan") {
    val inputs = Seq(a, b)
    val cached = multiJoin(inputs, Seq("k")).cache()
    try {
      def usesCache(df: DataFrame) =
        collect(df.queryExecution.executedPlan) { case s: InMemoryTableScanExec => s }.nonEmpty
      val same = multiJoin(inputs, Seq("k"))
      assert(usesCache(same) && usesCache(same.groupBy("k").count()))
      val other = multiJoin(inputs, Seq("k"), roles = Seq("required", "optional"))
      assert(!usesCache(other))
      val rows = same.collect().toSeq
      cached.unpersist(blocking = true)
      assertSameRows(rows, rowsWhenOff(multiJoin(inputs, Seq("k"))), "the join without a cache")
    } finally cached.unpersist(blocking = true)
  }

  test("does not read unused columns", Slow) {
    withTempPath { dir =>
      a.write.parquet(s"$dir/a")
      b.write.parquet(s"$dir/b")
      val files = Seq("a", "b").map(f => spark.read.parquet(s"$dir/$f"))
      def read(df: DataFrame): Seq[Set[String]] = {
        checkJoin(df)
        collect(df.queryExecution.executedPlan) { case s: FileSourceScanExec =>
          s.requiredSchema.fieldNames.toSet
        }
      }
      val joined = fullJoin("k")(files: _*)
      assert(read(joined) === Seq(Set("k", "v", "x"), Set("k", "w", "y")))
      assert(read(joined.select("k", "y")) === Seq(Set("k"), Set("k", "y")))
      assert(read(joined.agg(count("*"))) === Seq(Set("k"), Set("k")))
      assert(read(joined.where("v > 1").select("w")) === Seq(Set("k", "v"), Set("k", "w")))
      val anti = multiJoin(files, Seq("k"), roles = Seq("optional", "excluded"), indicator = "i")
      assert(read(anti) === Seq(Set("k", "v", "x"), Set("k")))
      assert(read(anti.select("i")) === Seq(Set("k"), Set("k")))
    }
  }

  test("counts and limits the rows of the join", Slow) {
    val joined = fullJoin("k")(a, b)
    val all = checkJoin(joined).toSet
    assert(joined.count() === 4)
    assert(joined.limit(0).count() === 0)
    assert(joined.limit(3).count() === 3)
    assert(joined.limit(2).collect().forall(all.contains))
    assert(joined.take(10).toSet === all)
    assert(!joined.isEmpty)
    assert(
      joined.orderBy("k", "v").limit(2).collect() ===
        Array(Row(null, 3, "c", null, null), Row(1, 1, "a", null, null)))
    assert(joined.tail(4).toSet === all)
  }

  test("reports exactly the columns without nulls as not nullable", Slow) {
    def nullables(df: DataFrame) = df.schema.filter(_.nullable).map(_.name)
    val inputs = Seq(notNull(0), notNull(1), notNull(2))
    def join(roles: String*) = {
      val df = multiJoin(inputs.take(roles.size), Seq("k"), roles = roles, indicator = "i")
      checkJoin(df)
      // Spark's conclusions in filters must be right. Some of these plans no longer contain a join.
      val nulls = df.columns.map(c => df.where(col(c).isNull)).reduce(_ union _)
      assertSameRows(nulls.collect().toSeq, rowsWhenOff(nulls), "the same query with skewext off")
      df
    }
    assert(nullables(join("optional", "optional")) === Seq("v0", "v1"))
    assert(nullables(join("required", "optional", "required")) === Seq("v1"))
    assert(nullables(join("required", "excluded")) === Nil)
    // Only one input has a nullable key, and the join does not return its null keys.
    val nullable = table("k, w", "(1L, 1), (null, 2)")
    val inner =
      multiJoin(Seq(notNull(0), nullable), Seq("k"), roles = Seq("required", "required"))
    assert(!inner.schema("k").nullable)
    checkJoin(inner)
    assert(fullJoin("k")(notNull(0), nullable).schema("k").nullable)
    val right = multiJoin(Seq(notNull(0), nullable), Seq("k"), roles = Seq("optional", "required"))
    assert(right.schema("k").nullable)
    assert(checkJoin(right).exists(_.isNullAt(0)))
  }

  test("maxRows is an upper bound for the rows") {
    import InputRole._
    def bound(inputs: (Option[Long], InputRole)*) =
      MultiJoinOutput.maxRows(inputs.map(_._1), inputs.map(_._2))
    assert(bound(Some(3L) -> Optional, Some(4L) -> Optional) === Some(19))
    assert(bound(Some(3L) -> Required, Some(4L) -> Optional) === Some(15))
    assert(bound(Some(3L) -> Required, Some(4L) -> Required) === Some(12))
    assert(bound(Some(3L) -> Optional, Some(4L) -> Excluded) === Some(3))
    assert(bound(Some(0L) -> Optional, Some(0L) -> Optional) === Some(0))
    assert(bound(Some(0L) -> Required, None -> Optional) === None)
    assert(bound(Some(3L) -> Optional, None -> Excluded) === Some(3))
    assert(bound(Some(1L << 40) -> Required, Some(1L << 40) -> Required) === None)
    // All rows have one key, so the join returns every combination.
    for (roles <- Seq(Seq("optional", "optional"), Seq("required", "optional"))) {
      val joined =
        multiJoin(Seq(table("k", "(1), (1)"), table("k", "(1), (1), (1)")), Seq("k"), roles = roles)
      assert(node(joined).maxRows.get >= joined.count())
    }
  }

  test("estimates the sum of the inputs, and the product of those with duplicate keys") {
    val inputs = Seq(notNull(0), notNull(1), notNull(2))
    def sizes(join: MultiFullJoin) = join.children.map(_.stats.sizeInBytes)
    val repeated = node(multiJoin(inputs, Seq("k")))
    assert(repeated.stats.sizeInBytes === sizes(repeated).product)
    val once = inputs.map(_.groupBy("k").count())
    for (join <- Seq(once, once.updated(1, inputs(1))).map(i => node(multiJoin(i, Seq("k"))))) {
      assert(join.stats.sizeInBytes === sizes(join).sum)
    }
    val two = node(multiJoin(inputs.updated(2, once(2)), Seq("k")))
    assert(two.stats.sizeInBytes === sizes(two).take(2).product + sizes(two)(2))
    val anti = node(multiJoin(inputs, Seq("k"), roles = Seq("required", "excluded", "excluded")))
    assert(anti.stats.sizeInBytes === anti.children.head.stats.sizeInBytes)
    // An empty input may be the shuffle that adaptive execution ran first.
    val empty = LocalRelation(table("k", "(1)").queryExecution.analyzed.output)
    val outer = two.withInputs(two.children.updated(1, empty))
    assert(empty.stats.sizeInBytes === 0 && outer.stats.sizeInBytes > sizes(two).head)
  }

  test("a canonical plan has columns of the same types") {
    // Spark makes plans of subqueries canonical again, and then reads the columns of a union.
    val keysLast = Seq(table("v, k", "('x', 1), ('y', 2)"), table("w, x, k", "('z', true, 2)"))
    val chain = keysLast.head.as("l").join(keysLast(1).as("r"), col("l.k") === col("r.k"), "full")
    val small = table("k, s", "(CAST(1 AS INT), 'x'), (null, 'y')")
    val marked = keysLast.head.join(
      small.hint("skewext_join", "broadcast_map"),
      keysLast.head("k") === small("k"),
      "full")
    def types[P <: QueryPlan[P]](plan: P): Unit = {
      val twice = plan.canonicalized.canonicalized
      val all = plan.collect { case node => node }.zip(twice.collect { case node => node })
      for ((node, same) <- all) assert(node.output.map(_.dataType) === same.output.map(_.dataType))
    }
    for (df <- Seq(
        fullJoin("k")(a.select("k"), b.select("k")),
        fullJoin("k")(keysLast: _*),
        chain,
        marked)) {
      val all = df.union(df)
      types[LogicalPlan](all.queryExecution.optimizedPlan)
      types[SparkPlan](all.queryExecution.sparkPlan)
    }
  }

  test("every attribute is from an input or from the join") {
    val df = multiJoin(Seq(a, b, a), Seq("k"), indicator = "i")
    for (plan <- Seq(df.queryExecution.analyzed, df.queryExecution.optimizedPlan)) {
      plan.foreach(n => assert(n.missingInput.isEmpty, n))
      assert(node(plan).references.subsetOf(node(plan).inputSet))
      assert(node(plan).outputSet.size === node(plan).output.size)
    }
    df.queryExecution.executedPlan.foreach(n => assert(n.missingInput.isEmpty, n))
    assert(df.queryExecution.analyzed.isInstanceOf[Project])
  }

  test("the plan shows keys, roles and the indicator in one line") {
    def line(df: DataFrame) =
      df.queryExecution.executedPlan.toString.linesIterator
        .map(_.trim)
        .find(_.contains("MultiFullJoin"))
        .get
    assert(line(fullJoin("k")(a, b)).endsWith("MultiFullJoin [k] full outer, 2 inputs"))
    val roles = Seq("required", "optional", "excluded")
    val df = multiJoin(Seq(a, b, a), Seq("k"), roles = roles, indicator = "sources")
    assert(
      line(df).endsWith(
        "MultiFullJoin [k] 3 inputs: required, optional, excluded, indicator sources"))
    assert(
      df.queryExecution.optimizedPlan.toString.contains("MultiFullJoin [k] 3 inputs: required"))
    val formatted = df.queryExecution.explainString(FormattedMode)
    assert(formatted.contains("Input 0 (required), key"))
    assert(formatted.contains("Input 2 (excluded), key"))
  }

  test("metrics count input rows, output rows, keys and null keys") {
    val df = multiJoin(
      Seq(
        table("k, a", "(1, 1), (1, 2), (2, 3), (null, 4), (null, 5)"),
        table("k, b", "(1, 1), (1, 2), (3, 3), (null, 4)")),
      Seq("k"))
    assert(df.collect().length === 9)
    def value(name: String) = operator(df).metrics(name).value
    assert(value("numOutputRows") === 9)
    assert(value("numRowsOfInput0") === 5)
    assert(value("numRowsOfInput1") === 4)
    assert(value("numGroups") === 3)
    assert(value("numNullKeyRows") === 3)
    assert(value("spillSize") === 0)
    assert(value("peakMemory") > 0)
  }
}
