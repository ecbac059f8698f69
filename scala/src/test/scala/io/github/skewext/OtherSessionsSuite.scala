package io.github.skewext

import java.nio.file.Files

import scala.collection.JavaConverters._

import io.github.skewext.platform.SkewConf
import org.apache.commons.io.FileUtils

import org.apache.spark.sql.functions.col
import org.apache.spark.sql.skewext.TestSessions
import org.apache.spark.sql.streaming.Trigger
import org.apache.spark.sql.{AnalysisException, DataFrame, Row, SparkSession}

/** Inputs of several sessions of one SparkContext, as in `foreachBatch`: joined as Spark joins them. */
class OtherSessionsSuite extends MultiJoinTest {

  private val Values = "VALUES (1, 'a'), (2, 'b'), (2, 'c'), (null, 'd')"

  private def one(session: SparkSession): DataFrame =
    session.sql(s"SELECT * FROM $Values AS t(k, v)")

  private def two(session: SparkSession): DataFrame =
    session.sql("SELECT * FROM VALUES (2, 'x'), (3, 'y'), (null, 'z') AS t(k, w)")

  private def others: Seq[(String, SparkSession)] =
    Seq("newSession" -> spark.newSession(), "cloneSession" -> TestSessions.cloneOf(spark))

  /** In each order, since it is the first input that brings the session. */
  private def inBothOrders(check: (SparkSession, SparkSession) => Unit): Unit =
    others.foreach { case (name, other) =>
      withClue(s"$name: ") {
        check(spark, other)
        check(other, spark)
      }
    }

  private def skewJoined(left: DataFrame, right: DataFrame, how: String, technique: String) =
    Joins.skewJoin(left, right, Left(Seq("k")), how, Technique(technique))

  /** Figures have settings in them, which sessions may differ in. */
  private def hotKeys(inputs: DataFrame*): Seq[Row] = run(
    """{"function": "skew_report", "arguments": {"keys": "k", "partitions": 3}, "columns": [0, 0]}""",
    inputs: _*)
    .select("key.*", "partition", "least_rows", "most_rows")
    .where("partition IS NOT NULL")
    .collect()
    .toSeq

  private def isExplainedAsOurs(df: DataFrame): Boolean =
    PythonApi.explain(df).contains(""""operators":["MultiFullJoin"]""")

  private def writeBucketed(df: DataFrame, table: String): Unit = run(
    s"""{"function": "write_bucketed", "columns": [0], "arguments": {
       "table": "$table", "by": "k", "buckets": 2, "mode": "overwrite"}}""",
    df)

  private def run(request: String, inputs: DataFrame*): DataFrame =
    PythonApi.run(request, inputs.asJava, inputs.asJava)

  test("multi-way joins of inputs of two sessions, in that of the first", Slow) {
    inBothOrders { (first, second) =>
      val inputs = Seq(one(first), two(second), one(second).toDF("k", "u"))
      val df = fullJoin("k")(inputs: _*)
      assert(df.sparkSession eq first)
      val rows = df.collect().toSeq
      assert(operators(df).size === 1, df.queryExecution.executedPlan)
      assert(isExplainedAsOurs(df))
      assertSameRows(rows, stockChain("k")(inputs: _*).collect().toSeq, "Spark's chain")
    }
  }

  test("settings and names are those of the first input's session, in plans and explanations") {
    val other = spark.newSession()
    other.conf.set(SkewConf.ENABLED.key, "false")
    other.conf.set("spark.sql.caseSensitive", "true")
    val on = fullJoin("K")(one(spark), two(other))
    assert(operators(on).size === 1 && isExplainedAsOurs(on))
    intercept[AnalysisException](fullJoin("K")(one(other), two(spark)))
    val off = fullJoin("k")(one(other), two(spark))
    assert(operators(off).isEmpty && !isExplainedAsOurs(off))
    assert(PythonApi.explain(off).contains(s"${SkewConf.ENABLED.key} is false"))
    assertSameRows(off.collect().toSeq, on.collect().toSeq, "the same where skewext is on")
  }

  test("temporary views are those of each input's own session") {
    val other = spark.newSession()
    withTempView("t") {
      one(spark).createOrReplaceTempView("t")
      two(other).createOrReplaceTempView("t")
      val df = fullJoin("k")(spark.table("t"), other.table("t"))
      val expected = fullJoin("k")(one(spark), two(spark))
      assertSameRows(df.collect().toSeq, expected.collect().toSeq, "one session")
    }
  }

  test("joins by a technique of sides of two sessions", Slow) {
    inBothOrders { (first, second) =>
      for (technique <- Seq("salted", "broadcast_map", "adaptive")) {
        val df = skewJoined(one(first), two(second), "full", technique)
        assert(df.sparkSession eq first)
        val stock = one(first).join(two(second), Seq("k"), "full")
        assertSameRows(df.collect().toSeq, stock.collect().toSeq, s"Spark's join, $technique")
      }
    }
  }

  test("skew reports of inputs of two sessions") {
    val expected = hotKeys(one(spark), two(spark))
    inBothOrders((first, second) => assert(hotKeys(one(first), two(second)) === expected))
  }

  test("a session without the extension plans a join whose other input comes from one with it") {
    for (join <- Seq[(DataFrame, DataFrame) => DataFrame](
        (a, b) => fullJoin("k")(a, b),
        (a, b) => skewJoined(a, b, "full", "broadcast_map"))) {
      val bare = TestSessions.withoutExtensions(spark)
      val df = join(one(bare), two(spark))
      assertSameRows(
        df.collect().toSeq,
        stockChain("k")(one(spark), two(spark)).collect().toSeq,
        "Spark's join")
    }
    // The operator is in the plan of an input.
    val bare = TestSessions.withoutExtensions(spark)
    val joined = fullJoin("k")(one(spark), two(spark))
    assert(hotKeys(one(bare), joined) === hotKeys(one(spark), joined))
  }

  test("in foreachBatch: a batch of a stream and a static table", Slow) {
    val folder = Files.createTempDirectory("stream")
    val files = folder.resolve("files").toString
    one(spark).write.parquet(files)
    var batches = 0
    val each: (DataFrame, Long) => Unit = (batch, _) => {
      assert(batch.sparkSession ne spark)
      batches += 1
      val static = two(spark)
      checkBatch(batch, static)
      checkBatch(static, batch)
      batch.createOrReplaceTempView("batch")
      val byName =
        batch.sparkSession.sql("SELECT * FROM skewext_multi_join(TABLE(batch), TABLE(static), 'k')")
      val expected = stockChain("k")(batch, static)
      assertSameRows(byName.collect().toSeq, expected.collect().toSeq, "Spark's join")
    }
    withTempView("static") {
      two(spark).createOrReplaceTempView("static")
      withTable("batches") {
        try {
          spark.readStream
            .schema("k INT, v STRING")
            .parquet(files)
            .writeStream
            .option("checkpointLocation", folder.resolve("checkpoint").toString)
            .trigger(Trigger.AvailableNow())
            .foreachBatch(each)
            .start()
            .awaitTermination()
        } finally FileUtils.deleteDirectory(folder.toFile)
      }
    }
    assert(batches === 1)
  }

  private def checkBatch(a: DataFrame, b: DataFrame): Unit = {
    val expected = stockChain("k")(a, b).collect().toSeq
    val df = fullJoin("k")(a, b)
    assertSameRows(df.collect().toSeq, expected, "Spark's join")
    assert(operators(df).size === 1 && isExplainedAsOurs(df))
    assert(PythonApi.queryReport(df).contains("MultiFullJoin"))
    // A batch is an RDD: techniques that read a side twice refuse it.
    val byTechnique = skewJoined(a, b, "full", "adaptive")
    assertSameRows(byTechnique.collect().toSeq, expected, "Spark's join")
    assert(hotKeys(a, b).map(_.getInt(0)).sorted === Seq(1, 2, 3))
    writeBucketed(df, "batches")
    val written = spark.table("batches").select(df.columns.map(col): _*)
    assertSameRows(written.collect().toSeq, expected, "Spark's join")
  }
}
