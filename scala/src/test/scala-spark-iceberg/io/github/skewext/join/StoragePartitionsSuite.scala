package io.github.skewext.join

import io.github.skewext.explain.{Explainer, Origin}
import io.github.skewext.join.exec.{AlignPartitionsExec, MultiFullJoinExec}
import io.github.skewext.merge.MergeTest
import io.github.skewext.platform.{Guard, SkewConf}
import io.github.skewext.rewrite.RewriteReason

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical.Join
import org.apache.spark.sql.functions._
import org.apache.spark.sql.internal.SQLConf

/** Joins of Iceberg tables that are partitioned by the key in their storage. */
class StoragePartitionsSuite extends MergeTest with StoragePartitionsTest {

  /** @param key of the number of a row */
  private case class Transform(name: String, by: String, key: String, isKnown: Boolean = true) {
    override def toString: String = name
  }

  private val Bucket = Transform("bucket", "bucket(4, k)", "id")
  private val Identity = Transform("identity", "k", "id div 2")
  private val Days = Transform("days", "days(k)", "timestamp_seconds(40000 * id)")
  // To Spark a transform has a column and perhaps a number of buckets.
  private val Truncate = Transform("truncate", "truncate(1, k)", "string(id)", isKnown = false)

  /** Every fifth row has no key, and each partition two files. */
  private def create(name: String, by: Transform, from: Int, until: Int): DataFrame = {
    val table = s"ice.db.$name"
    val v = s"v_${name.takeRight(1)}"
    val rows = spark
      .range(from, until, 1, 2)
      .selectExpr(s"if(id % 5 = 4, NULL, ${by.key}) AS k", s"id AS $v")
    val columns = rows.schema.map(f => s"${f.name} ${f.dataType.sql}").mkString(", ")
    spark.sql(s"DROP TABLE IF EXISTS $table")
    spark.sql(s"""CREATE TABLE $table ($columns) USING iceberg PARTITIONED BY (${by.by})
                 |TBLPROPERTIES (
                 |  'write.distribution-mode' = 'none',
                 |  'read.split.target-size' = '1000',
                 |  'read.split.open-file-cost' = '1000',
                 |  'read.split.adaptive-size.enabled' = 'false')""".stripMargin)
    rows.writeTo(table).append()
    spark.table(table)
  }

  /** Of which none has all values. */
  private def tables(by: Transform): Seq[DataFrame] =
    Seq(("a", 0, 40), ("b", 20, 60), ("c", 30, 90), ("d", 1, 4)).map { case (name, from, until) =>
      create(s"${by.name}_$name", by, from, until)
    }

  private lazy val buckets = tables(Bucket)

  // No two are alike, or one shuffle would do for both.
  private def plain(i: Int): DataFrame =
    spark.range(0, 20L + i, 1, 2).select((col("id") % 9).as("k"), col("id").as(s"v_p$i"))

  private def shuffles(df: DataFrame): Int = {
    df.collect()
    exchanges(df).size
  }

  (Bucket +: some(1, Seq(Identity, Days, Truncate))).foreach { by =>
    test(s"full outer joins of tables by $by", Slow) {
      val all = if (by == Bucket) buckets else tables(by)
      for (n <- some(1, Seq(2, 3)) :+ 4) {
        val df = checkFullJoin("k")(all.take(n): _*)
        assert(exchanges(df).size === (if (by.isKnown) 0 else n), df.queryExecution.executedPlan)
        assert(aligned(df).size === (if (by.isKnown) n else 0))
      }
    }
  }

  test("other roles, with and without adaptive execution, in generated code", Slow) {
    val roles = Seq(
      Seq("required", "optional", "optional"),
      Seq("optional", "required", "excluded"),
      Seq("required", "required", "optional"),
      Seq("optional", "excluded", "optional"))
    for (of <- some(2, roles); adaptive <- Seq("true", "false")) {
      withSQLConf(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> adaptive) {
        val df = multiJoin(buckets.take(3), Seq("k"), roles = of)
        checkJoin(df)
        assert(exchanges(df).isEmpty, df.queryExecution.executedPlan)
      }
    }
    inGeneratedCode(checkJoin(fullJoin("k")(buckets.take(3): _*)))
  }

  test("a semi join goes below, and Spark has not asked tables for their size by then", Slow) {
    val few = spark.range(0, 40, 3).select(col("id").as("x"))
    val df = multiJoin(buckets.take(2), Seq("k"), roles = Seq("required", "optional"))
      .join(few, col("v_a") === col("x"), "left_semi")
    checkJoin(df)
    val join = df.queryExecution.optimizedPlan.collectFirst { case j: MultiFullJoin => j }
    assert(join.exists(_.children.head.exists(_.isInstanceOf[Join])))
  }

  test("partitions are where Spark's settings want them") {
    val df = fullJoin("k")(buckets.take(3): _*)
    withSQLConf(SQLConf.V2_BUCKETING_ENABLED.key -> "false") {
      assert(shuffles(again(df)) === 3)
    }
    withSQLConf(SQLConf.V2_BUCKETING_PUSH_PART_VALUES_ENABLED.key -> "false") {
      // The fourth has three rows, and so not all buckets.
      val missing = fullJoin("k")(buckets.take(2) :+ buckets(3): _*)
      checkJoin(missing)
      assert(exchanges(missing).size === 3)
      val same = again(df)
      checkJoin(same)
      assert(exchanges(same).isEmpty)
    }
    // Two files of a bucket are partitions of their own to Spark then, which it puts together.
    withSQLConf(SQLConf.V2_BUCKETING_PARTIALLY_CLUSTERED_DISTRIBUTION_ENABLED.key -> "true") {
      val clustered = again(df)
      checkJoin(clustered)
      assert(exchanges(clustered).isEmpty)
    }
  }

  test("a bucket of a string beside days", Slow) {
    val all = Seq(("h", 0, 40), ("i", 20, 60), ("j", 10, 30)).map { case (name, from, until) =>
      val table = s"ice.db.strings_$name"
      spark.sql(s"DROP TABLE IF EXISTS $table")
      spark.sql(s"""CREATE TABLE $table (s STRING, t TIMESTAMP, v_$name BIGINT) USING iceberg
                   |PARTITIONED BY (bucket(4, s), days(t))""".stripMargin)
      for (_ <- 1 to 2)
        spark
          .range(from, until, 1, 2)
          .selectExpr(
            "if(id % 9 = 4, null, concat('key ', id div 3)) AS s",
            "if(id % 11 = 5, null, timestamp_seconds(40000 * (id div 3))) AS t",
            s"id AS v_$name")
          .writeTo(table)
          .append()
      spark.table(table)
    }
    for (clustered <- Seq("false", "true"))
      withSQLConf(SQLConf.V2_BUCKETING_PARTIALLY_CLUSTERED_DISTRIBUTION_ENABLED.key -> clustered) {
        val df = checkFullJoin("s", "t")(all: _*)
        assert(exchanges(df).isEmpty, df.queryExecution.executedPlan)
      }
  }

  test("inputs that are partitioned in other ways are shuffled", Slow) {
    val other = create("other_e", Transform("eight", "bucket(8, k)", "id"), 0, 12)
    for (third <- Seq(other, plain(0))) {
      val df = checkFullJoin("k")(buckets.head, buckets(1), third)
      assert(exchanges(df).size === 3)
      assert(aligned(df).isEmpty)
    }
    // By a column besides the key, rows of one key are in several partitions.
    val finer = Seq("f", "g").map { name =>
      create(s"finer_$name", Transform("finer", s"k, v_$name", "id div 4"), 0, 9)
    }
    assert(exchanges(checkFullJoin("k")(finer: _*)).size === 2)
  }

  test("by one of two keys") {
    val inputs = buckets.take(3).map(t => t.withColumn("l", t(t.columns.last) % 2))
    val df = checkFullJoin("k", "l")(inputs: _*)
    assert(exchanges(df).size === 3)
    withSQLConf(SQLConf.REQUIRE_ALL_CLUSTER_KEYS_FOR_CO_PARTITION.key -> "false") {
      val some = checkFullJoin("k", "l")(inputs: _*)
      assert(exchanges(some).isEmpty)
    }
  }

  test("filters, projections, groups and one table several times", Slow) {
    val grouped = buckets(1).groupBy("k").agg(max("v_b").as("m"))
    val filtered = buckets(2).where("v_c > 11").withColumn("x", col("v_c") + 1)
    val df = checkFullJoin("k")(
      buckets.head.withColumnRenamed("k", "l").selectExpr("l AS k", "v_a"),
      grouped,
      filtered)
    assert(exchanges(df).isEmpty, df.queryExecution.executedPlan)
    val same = multiJoin(Seq.fill(3)(buckets.head), Seq("k"), suffixes = Seq("_1", "_2", "_3"))
    checkJoin(same)
    assert(exchanges(same).isEmpty)
    // Grouped by something else, rows are shuffled below.
    val regrouped = buckets(1).groupBy((col("k") + 1).as("k")).agg(max("v_b").as("m"))
    assert(exchanges(checkFullJoin("k")(buckets.head, regrouped)).size === 2)
  }

  test("a filter that is made while the query runs leaves partitions empty") {
    val both = Seq("s", "t").map(n => create(s"dpp_$n", Identity, 0, 24))
    val df = multiJoin(
      Seq(both.head.where("v_s in (3, 10)"), both(1)),
      Seq("k"),
      roles = Seq("required", "optional"))
    withSQLConf(PrunesAtRuntime: _*) {
      val filtered = again(df)
      checkJoin(filtered)
      assert(aligned(filtered).size === 2, filtered.queryExecution.executedPlan)
    }
  }

  test("an operator above relies only on equal keys being in one partition", Slow) {
    val join = fullJoin("k")(buckets.take(3): _*)
    val counts = join.groupBy("k").agg(count("*").as("n"))
    checkJoin(counts)
    assert(exchanges(counts).isEmpty, counts.queryExecution.executedPlan)
    // Spark would push other values through the join, if it took it for a scan's partitioning.
    for (how <- some(1, Seq("inner", "full", "left", "right"))) {
      val above = join.join(buckets(3), Seq("k"), how)
      checkJoin(above)
      val below = buckets(3).join(counts, Seq("k"), how)
      checkJoin(below)
    }
    val nested = fullJoin("k")(join, buckets(3))
    checkJoin(nested)
  }

  test("a chain is rewritten unless it takes one shuffle more", Slow) {
    def chain(third: DataFrame) =
      buckets.head.join(buckets(1), Seq("k"), "full").join(third, Seq("k"), "full")
    withSQLConf(SkewConf.MULTI_JOIN_REWRITE.key -> "true") {
      val all = chain(buckets(2))
      checkJoin(all)
      assert(exchanges(all).isEmpty)
      assert(aligned(all).size === 3)
      // Spark needs two, as it has the first without any.
      val two = chain(plain(0))
      assertSameRows(two.collect(), rowsWhenOff(two), "the same query with skewext off")
      assert(exchanges(two).size === 2)
      assert(operators(two).isEmpty)
      val origin = Explainer.explain(two.queryExecution).joins.head.origin
      assert(origin.status === Origin.LeftAlone)
      assert(origin.text === RewriteReason.StoragePartitions.text)
      // With one more that is shuffled, Spark needs as many as we do.
      val four = chain(plain(0)).join(plain(1), Seq("k"), "full")
      checkJoin(four)
      assert(exchanges(four).size === 4, four.queryExecution.executedPlan)
    }
  }

  test("explain shows how the inputs are read") {
    val df = fullJoin("k")(buckets.take(3): _*)
    val join = Explainer.explain(df.queryExecution).joins.head
    assert(join.execution.get.exchanges === 0)
    assert(
      join.inputs.map(_.read.head).distinct ===
        Seq("partitions of the storage, by bucket(4, k): 5, without a shuffle"))
    assert(df.queryExecution.executedPlan.toString.contains("AlignPartitions bucket(4, k)"))
  }

  test("partitions that are not those of the plan fail the query") {
    val df = fullJoin("k")(buckets.take(2): _*)
    val join = operator(df).asInstanceOf[MultiFullJoinExec]
    val wrong = join.mapChildren {
      case a: AlignPartitionsExec => a.copy(values = a.values.tail)
      case other => other
    }
    val error = intercept[IllegalStateException](wrong.execute())
    assert(error.getMessage.contains("are not those that the join was planned for"))
  }

  test("a chain whose table Spark prunes at run time stays Spark's") {
    spark.sql("CREATE OR REPLACE TABLE ice.db.days (day INT, name STRING) USING iceberg")
    spark.sql("INSERT INTO ice.db.days VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    spark.sql(
      "CREATE OR REPLACE TABLE ice.db.facts (k BIGINT, day INT) USING iceberg PARTITIONED BY (day)")
    spark
      .range(2000)
      .selectExpr("id % 20 AS k", "cast(id % 4 AS int) AS day")
      .writeTo("ice.db.facts")
      .append()
    spark.range(0, 2000, 1, 2).selectExpr("id AS k", "id AS v").createOrReplaceTempView("b")
    spark.range(10, 2000, 1, 2).selectExpr("id AS k", "id AS w").createOrReplaceTempView("c")
    val query = "SELECT * FROM ice.db.facts LEFT JOIN (b FULL JOIN c USING (k)) USING (k) " +
      "JOIN ice.db.days USING (day) WHERE name = 'c'"
    withSQLConf(
      SkewConf.MULTI_JOIN_REWRITE.key -> "true",
      SQLConf.V2_BUCKETING_ENABLED.key -> "false",
      SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key -> "3000") {
      for ((sql, isLeft) <- Seq(query -> true, query.replace("name = 'c'", "true") -> false)) {
        val df = spark.sql(sql)
        assertSameRows(df.collect().toSeq, rowsWhenOff(df), sql)
        assert(operators(df).isEmpty === isLeft, df.queryExecution.executedPlan)
        assert(Guard.failuresIn(spark).isEmpty)
      }
    }
  }
}
