package io.github.skewext.disjunction

import io.github.skewext.MultiJoinTest
import io.github.skewext.platform.SkewConf

import org.apache.spark.SparkConf
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.joins.{BaseJoinExec, BroadcastNestedLoopJoinExec, CartesianProductExec}
import org.apache.spark.sql.internal.SQLConf

/** Tables for joins with OR, and the comparison with Spark's nested loops. */
trait OrJoinTest extends MultiJoinTest {

  override protected def sparkConf: SparkConf = super.sparkConf
    .set(SkewConf.JOIN_ENABLED.key, "true")
    .set(SkewConf.OR_JOIN_MIN_PAIRS.key, "0")
    .set(SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key, "-1")
    // Spark 4 is in ANSI mode, in which sums may fail, and are no keys.
    .set(SQLConf.ANSI_ENABLED.key, "false")

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    def store(name: String, rows: Int, nulls: Int): Unit = spark
      .range(0, rows, 1, 2)
      .selectExpr(
        s"if(id % $nulls = 0, null, concat(if(id % 2 = 0, 'X', 'x'), id % 17)) AS e",
        s"if(id % ${nulls + 1} = 1, null, id % 23) AS p",
        s"CAST(if(id % ${nulls + 2} = 2, null, id % 19) AS INT) AS q",
        "if(id % 5 = 0, -0.0D, if(id % 5 = 1, 0.0D, if(id % 5 = 2, double('NaN'), double(id)))) AS f",
        s"CAST(id % 31 AS DECIMAL(10, ${nulls % 3})) AS d",
        "date_add(DATE'2024-01-01', CAST(id % 29 AS INT)) AS n",
        "named_struct('x', id % 13, 'y', if(id % 3 = 0, null, 'y')) AS st",
        "id DIV 2 AS v",
        "if(id % 4 = 0, null, id % 10) AS w")
      .write
      .mode("overwrite")
      .saveAsTable(name)
    store("a", 70, 6)
    store("b", 50, 4)
    store("empty", 0, 4)
    // Each row twice.
    spark.sql("SELECT * FROM b UNION ALL SELECT * FROM b").write.saveAsTable("twice")
  }

  override protected def afterAll(): Unit = {
    Seq("a", "b", "empty", "twice").foreach(name => spark.sql(s"DROP TABLE IF EXISTS $name"))
    super.afterAll()
  }

  protected val types: Seq[String] = Seq(
    "INNER",
    "LEFT",
    "RIGHT",
    "FULL",
    "LEFT SEMI",
    "LEFT ANTI",
    "EXISTS",
    "NOT EXISTS",
    "EXISTS OR",
    "WHERE")

  /** The query of a join type; EXISTS and a cross join with WHERE are forms, too. */
  protected def query(joinType: String, on: String, a: String = "a", b: String = "b"): String =
    joinType match {
      case "EXISTS" | "NOT EXISTS" =>
        s"SELECT * FROM $a a WHERE $joinType (SELECT 1 FROM $b b WHERE $on)"
      case "EXISTS OR" =>
        s"SELECT * FROM $a a WHERE v < 5 OR EXISTS (SELECT 1 FROM $b b WHERE $on)"
      case "LEFT SEMI" | "LEFT ANTI" => s"SELECT * FROM $a a $joinType JOIN $b b ON $on"
      case "WHERE" => s"SELECT a.v, a.e, b.* FROM $a a, $b b WHERE $on"
      case _ => s"SELECT a.*, b.*, b.v + 1 AS more FROM $a a $joinType JOIN $b b ON $on"
    }

  protected def nestedLoops(df: DataFrame): Seq[SparkPlan] =
    collectWithSubqueries(df.queryExecution.executedPlan) {
      case join @ (_: BroadcastNestedLoopJoinExec | _: CartesianProductExec) => join
    }

  protected def joins(df: DataFrame): Seq[BaseJoinExec] =
    collectWithSubqueries(df.queryExecution.executedPlan) { case join: BaseJoinExec => join }

  /** Checks that no pairs are compared, and that the rows are those of Spark's nested loop. */
  protected def check(query: String): DataFrame = check(spark.sql(query))

  protected def check(df: DataFrame): DataFrame = {
    val rows = df.collect().toSeq
    assert(nestedLoops(df).isEmpty, s"pairs are compared: ${df.queryExecution.executedPlan}")
    assertSameRows(rows, rowsWhenOff(df), "the same query with skewext off")
    df
  }
}
