package io.github.skewext.asof

import io.github.skewext.platform.LoadedExtension

import org.apache.spark.sql.functions._
import org.apache.spark.sql.skewext.{SqlInternals, TestSessions}
import org.apache.spark.sql.{AnalysisException, DataFrame, Row}

/** The entry points of as-of joins and `latest`: methods, table functions and their errors. */
class AsOfArgumentsSuite extends AsOfTables {

  test("bad arguments have an error that names them") {
    def fails(parts: String*)(df: => DataFrame): Unit = {
      val message = intercept[AnalysisException](df).getMessage
      parts.foreach(part => assert(message.contains(part)))
    }
    val v = Versions(prices, "at")
    fails("no column 'x'", "[id, k, t]")(asOf(spine, "x")(v))
    fails("Input 1", "no column 'x'", "[k, at, price]")(asOf(spine, "t")(v.copy(time = "x")))
    fails("'left' or 'inner', not 'full'")(asOf(spine, "t", "full")(v))
    fails("at least one table")(asOf(spine, "t")())
    fails("no direction 'up'", "backward, forward, nearest")(
      asOf(spine, "t")(v.copy(direction = "up")))
    fails("negative", "-1")(asOf(spine, "t")(v.copy(tolerance = "-1")))
    fails("no constant")(asOf(spine, "t")(v.copy(tolerance = "price")))
    val noFit = intercept[AnalysisException](
      asOf(spine.withColumn("t", col("t").cast("bigint")), "t")(
        v.copy(tolerance = "INTERVAL 5 DAYS"))).getMessage
    assert(noFit.contains("of input 1 (counting from 0) does not fit times of type BIGINT"))
    assert(!noFit.contains("\n") && !noFit.contains("Project"))
    fails("have a column 'at'", "suffixes=")(asOf(spine, "t")(v, v))
    fails("suffixes must have 2 entries, one for each input, not 1.")(
      asOf(spine, "t", suffixes = Seq("a"))(v))
    fails("list of key columns is empty")(asOf(spine, "t")(v.copy(keys = Nil, spineKeys = Nil)))
    fails("2 key columns")(asOf(spine, "t")(v.copy(keys = Seq("k", "price"))))
    val words = Versions(prices.selectExpr("k", "CAST(at AS STRING) at"), "at")
    val named = spine.selectExpr("k", "CAST(t AS STRING) t")
    fails("direction 'nearest'", "STRING have no differences")(
      asOf(named, "t")(words.copy(direction = "nearest")))
    fails("a tolerance", "STRING have no differences")(
      asOf(named, "t")(words.copy(tolerance = "1")))
    for ((one, other) <- Seq(spine -> words, named -> v)) {
      fails("cannot be compared", "of type STRING", "of type INT", "Cast one of them")(
        asOf(one, "t")(other))
    }
    val dates = Versions(prices.selectExpr("k", "array(DATE'2020-01-01') at"), "at")
    fails("The time 't' of the spine, of type INT", "ARRAY<DATE>")(asOf(spine, "t")(dates))
    val stream = spark.readStream.format("rate").load().selectExpr("value k", "timestamp at")
    fails("Input 1", "streaming")(asOf(spine, "t")(Versions(stream, "at")))
  }

  test("table functions are the same") {
    withTempView("s", "p") {
      spine.createOrReplaceTempView("s")
      prices.createOrReplaceTempView("p")
      val v = Versions(prices, "at")
      for ((arguments, same) <- Seq(
          "keys => 'k', time => 't', times => 'at'" -> v,
          "'k', 't', 'at', 'nearest', 2, false, array('price DESC')" ->
            v.copy(direction = "nearest", tolerance = "2", exact = false, ties = Seq(col("price"))),
          "keys => array(array('k')), spine_keys => array(array('id')), time => 't', " +
            "times => array('at'), tolerances => struct(3), ties => array(NULL)" ->
            v.copy(tolerance = "3", spineKeys = Seq("id")))) {
        val df = sql(s"SELECT * FROM skewext_asof_join(TABLE(s), TABLE(p), $arguments)")
        assert(df.schema === asOf(spine, "t")(same).schema)
        checkAnswer(df, asOf(spine, "t")(same))
      }
      checkAnswer(
        sql("SELECT * FROM skewext_latest(TABLE(p), 'k', array('at ASC NULLS LAST', 'price'))"),
        latest(prices, "k")(col("at").asc_nulls_last, col("price"))())
      withSQLConf("spark.sql.parser.quotedRegexColumnNames" -> "true") {
        prices.withColumnRenamed("price", "a `price`").createOrReplaceTempView("q")
        checkAnswer(
          sql("SELECT * FROM skewext_latest(TABLE(q), 'k', '`a ``price``` DESC', ties => 'at')"),
          latest(prices, "k")(col("price").desc)(col("at")))
      }
      assert(
        intercept[AnalysisException](
          sql("SELECT * FROM skewext_asof_join(TABLE(s), TABLE(p), 'k', 't', array('at', 'at'))")).getMessage
          .contains("'times' has 2 values"))
    }
  }

  test("a session that registers late") {
    val bare = TestSessions.withoutExtensions(spark)
    SqlInternals.withActive(bare) {
      val a = bare.sql("SELECT 1 k, 5 t")
      val df = asOf(a, "t")(Versions(bare.sql("SELECT 1 k, 4 at, 'x' v"), "at"))
      assert(!LoadedExtension.isIn(bare))
      assert(df.collect().toSeq === Seq(Row(1, 5, 4, "x")))
      bare.conf.set(Off._1, Off._2)
      assert(again(df).collect().toSeq === Seq(Row(1, 5, 4, "x")))
    }
  }
}
