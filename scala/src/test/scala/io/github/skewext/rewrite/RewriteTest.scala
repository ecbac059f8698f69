package io.github.skewext.rewrite

import io.github.skewext.MultiJoinTest
import io.github.skewext.platform.SkewConf
import io.github.skewext.rewrite.RewriteReason.Detailed

import org.apache.spark.SparkConf
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.internal.SQLConf

/**
 * Queries with Spark's joins. With the extension on, they must return the rows and the schema that
 * they return with it off.
 *
 * The tables `t0` to `t8` have null, missing and repeated keys: `k`, and `k` with `l`.
 */
trait RewriteTest extends MultiJoinTest {

  override protected def sparkConf: SparkConf = super.sparkConf
    .set(SkewConf.MULTI_JOIN_REWRITE.key, "true")
    // Otherwise the optimizer would compute tables of literal rows.
    .set(SQLConf.OPTIMIZER_EXCLUDED_RULES.key, ConvertToLocalRelation.ruleName)

  protected val numTables = 9

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    (0 until numTables).foreach { i =>
      val rows = (0 until 7).map { r =>
        val k = if (r == 3 + i % 2) "null" else ((r * (i + 1) + i) % 6).toString
        val l = if (r == 5 - i % 3) "null" else s"'${"xy".charAt((r + i) % 2)}'"
        s"($k, $l, '${r}v$i', ${r % 3 + 10 * i})"
      }
      // Every table has its first key twice.
      table(s"k, l, v$i, n$i", (rows :+ s"(${i % 6}, 'x', 'again$i', $i)").mkString(", "))
        .createOrReplaceTempView(s"t$i")
    }
  }

  /**
   * Checks the rows, the schema, and the numbers of inputs of the multi-way joins, topmost first.
   */
  protected def checkRewritten(query: DataFrame, numInputs: Int*): DataFrame = {
    val df = again(query)
    val rows = df.collect().toSeq
    val plan = df.queryExecution.optimizedPlan
    assert(operators(df).map(_.children.size) === numInputs, plan)
    assertSameRows(rows, rowsWhenOff(query), s"the same query with skewext off, for $plan")
    df
  }

  protected def checkRewritten(query: String, numInputs: Int*): DataFrame =
    checkRewritten(sql(query), numInputs: _*)

  /** Checks the rows, and that all joins are left to Spark, with this reason. */
  protected def checkLeft(query: DataFrame, reason: RewriteReason): DataFrame = {
    val df = checkRewritten(query)
    assert(reasons(df).map(_.reason).contains(reason), df.queryExecution.optimizedPlan)
    df
  }

  protected def checkLeft(query: String, reason: RewriteReason): DataFrame =
    checkLeft(sql(query), reason)

  /** Where no chain begins, the rule leaves no reasons, and `explain` asks for them. */
  protected def reasons(df: DataFrame): Seq[Detailed] = {
    val left = joins(df).flatMap(RewriteReason.of(_))
    if (left.nonEmpty) left
    else {
      RewriteJoinChains
        .withReasons(df.queryExecution.optimizedPlan)
        .collect { case join: Join => join }
        .flatMap(RewriteReason.of(_))
    }
  }

  protected def joins(df: DataFrame): Seq[LogicalPlan] =
    df.queryExecution.optimizedPlan.collect { case join: Join => join }
}
