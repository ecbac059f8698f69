package io.github.skewext.join.range

import io.github.skewext.Joins
import io.github.skewext.facts.MadeOf
import io.github.skewext.platform.SkewConf

import org.apache.spark.SparkConf
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.trees.TreePattern
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec
import org.apache.spark.sql.internal.SQLConf

/** Joins with equal keys beside a range, of which Spark broadcasts a side. */
class KeyedBroadcastSuite extends RangeJoinTest {

  override protected def sparkConf: SparkConf =
    super.sparkConf.set(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key, "true")

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    keyedViews(
      "if(id % 17 = 0, null, concat('key ', id % 2)) AS name",
      "CASE id % 4 WHEN 0 THEN double('NaN') WHEN 1 THEN -0.0D WHEN 2 THEN 0.0D END AS d")
  }

  private val range = "a.t >= b.t AND a.t < b.u"

  private def joined(joinType: String, on: String, side: String = "b") =
    query(joinType, on, s"/*+ BROADCAST($side) */", "x", "y").replace("a.k > 2", "a.id > 300")

  private def besideKeys(df: DataFrame): Seq[BroadcastRangeJoinExec] =
    ranges(df).filter(_.leftKeys.nonEmpty)

  private def check(query: String): BroadcastRangeJoinExec = {
    val df = spark.sql(query)
    assertSameRows(df.collect().toSeq, rowsWhenOff(df), "the same query with skewext off")
    assert(besideKeys(df).size === 1, df.queryExecution.executedPlan)
    besideKeys(df).head
  }

  private def checkLeft(query: String, reason: RangeReason): Unit = {
    val df = spark.sql(query)
    df.collect()
    val sparks = collect(df.queryExecution.executedPlan) { case join: BroadcastHashJoinExec =>
      join
    }
    assert(sparks.size === 1 && besideKeys(df).isEmpty, df.queryExecution.executedPlan)
    assert(Joins.explain(df).toString.contains(reason.text))
  }

  private val cases = for {
    side <- Seq(
      "INNER" -> "a",
      "INNER" -> "b",
      "LEFT" -> "b",
      "RIGHT" -> "a",
      "LEFT SEMI" -> "b",
      "LEFT ANTI" -> "b",
      "EXISTS" -> "b",
      "NOT EXISTS OR" -> "b")
    isCompiled <- Seq(true, false)
  } yield (side, isCompiled)

  test("replaces broadcast hash joins whose keys have many rows") {
    covering(cases) foreach { case given @ ((joinType, side), isCompiled) =>
      withClue(s"$given: ") {
        val settings = if (isCompiled) GeneratedCode else Interpreted
        withSQLConf(settings: _*)(check(joined(joinType, s"a.k = b.k AND $range", side)))
      }
    }
  }

  test("keys of each form, and other conditions", Slow) {
    for (on <- Seq(
        "a.name = b.name",
        "a.k = b.k AND a.name = b.name",
        "a.k <=> b.k",
        "a.d = b.d",
        "a.k + 1 = b.k AND a.id % 3 <> b.id % 3",
        "CAST(a.k AS DECIMAL(20, 0)) = CAST(b.k AS DECIMAL(20, 0))");
      joinType <- Seq("INNER", "LEFT"))
      withClue(s"$on: ")(check(joined(joinType, s"$on AND $range")))
    check(joined("LEFT", "a.k = b.k AND a.text_s >= b.text_s AND a.text_s < b.text_e"))
    check(joined("LEFT", "a.k = b.k AND abs(a.t - b.t) <= 4"))
    val prefixes = "a.text_s BETWEEN concat('a', b.text_s) AND concat('q', b.text_e)"
    check(joined("LEFT", s"a.k = b.k AND $prefixes AND a.id % 30 <> b.id % 7"))
  }

  test("tests few pairs, and the explanation has the number of them") {
    val df = spark.sql(joined("INNER", s"a.k = b.k AND $range"))
    val rows = df.collect().length
    val Seq(join) = besideKeys(df)
    assert(join.metrics("numOutputRows").value === rows)
    // Those at an open end, and reversed intervals.
    assert(join.metrics("numTests").value <= 2 * rows + 1000)
    val text = Joins.explain(df).toString
    assert(text.contains("BroadcastRangeJoin inner [k = k, (t >= t)"))
    assert(text.contains("is broadcast with a sorted index of its ranges for each key"))
    assert(text.contains("pairs tested for "))
  }

  test("one key with many rows is enough, in tables of longs and of other keys") {
    def one(hot: Int) =
      s"(SELECT *, if(id < $hot, 1, -id) AS n, if(id < $hot, '1', concat('-', id)) AS s FROM y)"
    val left = "(SELECT *, k AS n, string(k) AS s FROM x)"
    for (key <- Seq("n", "s"); isNull <- Seq(false, true)) withClue(s"$key, null keys $isNull: ") {
      val other = if (isNull) s"if(b.id % 5 = 4, null, b.$key)" else s"b.$key"
      def joinedWith(hot: Int) = s"SELECT /*+ BROADCAST(b) */ a.id, b.id FROM $left a " +
        s"JOIN ${one(hot)} b ON a.$key = $other AND $range"
      // With 200 of 700 rows in one key, the key of a row has 57 rows on average, or 45 of 560.
      check(joinedWith(200))
      // These are 15, or 12.
      checkLeft(joinedWith(100), RangeReason.FewRowsOfKeys)
    }
  }

  test("the join is planned again below and above others") {
    val inner = joined("INNER", s"a.k = b.k AND $range").replace("a.text_s, b.text_e", "a.k AS g")
    val counted = s"SELECT g, count(*) AS n FROM ($inner) t(i, j, g) GROUP BY g"
    check(s"SELECT c.*, b.id FROM ($counted) c JOIN b ON c.g = b.id")
    val grouped = "(SELECT k, t, max(id) AS id FROM x GROUP BY k, t)"
    check(s"SELECT /*+ BROADCAST(b) */ a.id, b.id FROM $grouped a JOIN y b ON a.k = b.k AND $range")
  }

  test("rules look through the join at the side that is not broadcast") {
    val MadeOf(Seq(part)) = check(joined("LEFT", s"a.k = b.k AND $range"))
    assert(part.linear && part.child.output.map(_.name).contains("t"))
    val df = spark.sql(joined("FULL", range))
    assert(ranges(df).size === 1 && ranges(df).flatMap(MadeOf.unapply(_)) === Nil)
  }

  test("joins whose keys have few rows, or are not known to have many, stay Spark's") {
    val few = s"a.k = b.k AND a.id % 50 = b.id % 50 AND $range"
    checkLeft(joined("INNER", few), RangeReason.FewRowsOfKeys)
    val many = joined("INNER", s"a.k = b.k AND $range")
    withSQLConf(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> "false")(
      checkLeft(many, RangeReason.FewRowsOfKeys))
    withSQLConf(SkewConf.RANGE_JOIN_ENABLED.key -> "false")(
      checkLeft(many, RangeReason.SwitchedOff))
    // A comparison in one direction has half of the pairs.
    val df = spark.sql(joined("INNER", "a.k = b.k AND a.t < b.t"))
    df.collect()
    assert(besideKeys(df).isEmpty)
  }

  test("joins that prune partitions stay Spark's", Slow) {
    withTable("parts") {
      spark.table("x").write.partitionBy("k").saveAsTable("parts")
      val pruned = "SELECT /*+ BROADCAST(b) */ a.id, b.id FROM parts a JOIN y b " +
        s"ON a.k = b.k AND $range WHERE b.u < 900"
      val plan = spark.sql(pruned).queryExecution.optimizedPlan
      assert(plan.containsPattern(TreePattern.DYNAMIC_PRUNING_SUBQUERY))
      checkLeft(pruned, RangeReason.PrunesPartitions)
      withSQLConf(SQLConf.DYNAMIC_PARTITION_PRUNING_ENABLED.key -> "false")(check(pruned))
    }
  }
}
