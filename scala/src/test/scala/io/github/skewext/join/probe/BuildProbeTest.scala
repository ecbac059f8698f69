package io.github.skewext.join.probe

import io.github.skewext.MultiJoinTest
import io.github.skewext.platform.SkewConf

import org.apache.spark.SparkConf
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.{DataFrame, Row}

/** Tables for joins of two sides, and the comparison with Spark's joins. */
trait BuildProbeTest extends MultiJoinTest {

  override protected def sparkConf: SparkConf = super.sparkConf
    .set(SkewConf.JOIN_ENABLED.key, "true")
    .set(SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key, "-1")

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    def columns(keys: Int, every: Int) = Seq(
      s"if(id % $every = 0, null, id % $keys) AS k",
      s"if(id % 7 = 0, null, concat('key ', id % 3)) AS s",
      "if(id % 5 = 0, -0.0D, if(id % 5 = 1, 0.0D, if(id % 5 = 2, double('NaN'), double(id)))) AS f",
      "id AS v",
      "if(id % 3 = 0, null, id % 20) AS w",
      "concat('text ', id % 11) AS t",
      "CAST(id % 90 AS DECIMAL(10, 2)) AS d",
      s"named_struct('x', id % 4, 'y', if(id % 2 = 0, null, 'y')) AS st",
      "array(id % 9, if(id % 4 = 0, null, id)) AS ar")
    def store(name: String, rows: Int, columns: Seq[String]): Unit =
      spark
        .range(0, rows, 1, 2)
        .selectExpr(columns: _*)
        .write
        .mode("overwrite")
        .saveAsTable(name)
    store("small", 60, columns(40, 11))
    store("large", 240, columns(60, 13))
    store("none", 0, columns(1, 2))
    store("hot", 200, Seq("id % 4 DIV 3 AS h", "id AS v"))
  }

  override protected def afterAll(): Unit = {
    Seq("small", "large", "none", "hot").foreach(name => spark.sql(s"DROP TABLE IF EXISTS $name"))
    super.afterAll()
  }

  protected def probe(query: String): DataFrame = spark.sql(query)

  protected def probes(df: DataFrame): Seq[BuildProbeJoinExec] =
    collectWithSubqueries(df.queryExecution.executedPlan) { case join: BuildProbeJoinExec => join }

  /** Checks that the operator runs, and that its rows are those of the plan without it. */
  protected def checkProbe(query: String): Seq[Row] = {
    val df = probe(query)
    val rows = df.collect().toSeq
    assert(probes(df).nonEmpty, s"not planned as our operator: ${df.queryExecution.executedPlan}")
    assertSameRows(rows, rowsWhenOff(df), "the same query with skewext off")
    rows
  }
}
