package io.github.skewext.join.range

import scala.collection.JavaConverters._

import io.github.skewext.MultiJoinTest
import io.github.skewext.join.probe.BuildProbeJoinExec
import io.github.skewext.platform.SkewConf
import io.github.skewext.technique.hint.TechniqueHint

import org.apache.spark.SparkConf
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.{DataFrame, Row}

/** Tables with the ends of intervals in each type, and the comparison with Spark's joins. */
trait RangeJoinTest extends MultiJoinTest {

  override protected def sparkConf: SparkConf =
    super.sparkConf.set(SkewConf.JOIN_ENABLED.key, "true")

  // Columns `<type>_s` and `<type>_e` have ends that are equal often, in no order, and sometimes null.
  protected val types: Map[String, String => String] = Map(
    "byte" -> (v => s"CAST($v AS TINYINT)"),
    "short" -> (v => s"CAST($v AS SMALLINT)"),
    "int" -> (v => s"CAST($v AS INT)"),
    "long" -> (v => s"CAST($v AS BIGINT)"),
    "float" -> (v => s"CAST(${special(v)} AS FLOAT)"),
    "double" -> special,
    "dec" -> (v => s"CAST($v * 0.25 AS DECIMAL(10, 2))"),
    "wide" -> (v => s"CAST($v * 0.25 AS DECIMAL(38, 12))"),
    "date" -> (v => s"date_add(DATE'2020-01-01', CAST($v AS INT))"),
    "ts" -> (v => s"timestamp_seconds(1600000000 + $v * 3600)"),
    "ntz" -> (v => s"CAST(timestamp_seconds(1600000000 + $v * 3600) AS TIMESTAMP_NTZ)"),
    "text" -> (v => s"concat('common prefix ', $v % 3, repeat('x', CAST($v % 4 AS INT)), $v)"),
    "bin" -> (v => s"CAST(concat(char(CAST(100 + $v AS INT)), $v) AS BINARY)"),
    "dt" -> (v => s"make_dt_interval(0, CAST($v AS INT))"),
    "ym" -> (v => s"make_ym_interval(0, CAST($v AS INT))"))

  private def special(v: String) = s"CASE CAST($v AS INT) WHEN 3 THEN double('NaN') " +
    "WHEN 5 THEN -0.0D WHEN 6 THEN 0.0D WHEN 8 THEN double('Infinity') " +
    s"WHEN 9 THEN double('-Infinity') ELSE CAST($v AS DOUBLE) END"

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    def view(name: String, rows: Int, seed: Int): Unit = {
      val start = s"if(id % 11 = 3, null, pmod(hash(id, $seed), 25))"
      val end = s"if(id % 13 = 5, null, pmod(hash(id, $seed), 25) + pmod(hash(id), 8) - 2)"
      val columns = types.toSeq.flatMap { case (name, of) =>
        Seq(s"${of("s")} AS ${name}_s", s"${of("e")} AS ${name}_e")
      }
      val made = spark
        .range(0, rows, 1, 2)
        .selectExpr("id", s"$start AS s", s"$end AS e", "id % 4 AS k")
        .selectExpr(Seq("id", "k") ++ columns: _*)
      // Values, so that conditions contain no computation of theirs.
      spark
        .createDataFrame(made.collect().toSeq.asJava, made.schema)
        .createOrReplaceTempView(name)
    }
    view("a", 50, 1)
    view("b", 40, 2)
  }

  /** Views `x` and `y`: one key has half of the rows, and each key has them in no order. */
  protected def keyedViews(more: String*): Unit = {
    def view(name: String, rows: Int, seed: Int): Unit = {
      val columns = Seq(
        "id",
        "if(id % 19 = 0, null, if(id % 2 = 0, 1, id % 7)) AS k",
        s"if(id % 23 = 0, null, pmod(hash(id, $seed), 1000)) AS t",
        s"pmod(hash(id, $seed), 1000) + pmod(hash(id), 30) - 3 AS u",
        s"concat('prefix ', format_number(pmod(hash(id, $seed), 1000), '0000')) AS text_s",
        s"concat('prefix ', format_number(pmod(hash(id), 1000), '0000')) AS text_e")
      spark.range(0, rows, 1, 2).selectExpr(columns ++ more: _*).createOrReplaceTempView(name)
    }
    view("x", 900, 1)
    view("y", 700, 2)
  }

  protected def ranges(df: DataFrame): Seq[BroadcastRangeJoinExec] =
    collectWithSubqueries(df.queryExecution.executedPlan) { case join: BroadcastRangeJoinExec =>
      join
    }

  protected def products(df: DataFrame): Seq[RangeProductExec] =
    collectWithSubqueries(df.queryExecution.executedPlan) { case join: RangeProductExec => join }

  /** The joins that are cut into ranges of values. */
  protected def cuts(df: DataFrame): Seq[BuildProbeJoinExec] =
    collectWithSubqueries(df.queryExecution.executedPlan) {
      case join: BuildProbeJoinExec if join.logicalLink.exists(isCut) => join
    }

  private def isCut(plan: LogicalPlan): Boolean = TechniqueHint.of(plan).exists {
    case _: TechniqueHint.OfRanges => true
    case _ => false
  }

  /** Checks that the operator runs, and that its rows are those of the plan without it. */
  protected def checkRange(query: String): Seq[Row] = {
    val df = spark.sql(query)
    val rows = df.collect().toSeq
    assert(
      ranges(df).nonEmpty || products(df).nonEmpty || cuts(df).nonEmpty,
      s"not planned as our operator: ${df.queryExecution.executedPlan}")
    assertSameRows(rows, rowsWhenOff(df), "the same query with skewext off")
    rows
  }

  protected val joinTypes: Seq[String] =
    Seq("INNER", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI", "EXISTS", "NOT EXISTS OR")

  protected def query(
      joinType: String,
      on: String,
      hint: String = "",
      a: String = "a",
      b: String = "b"): String =
    joinType match {
      case "EXISTS" =>
        s"SELECT a.id FROM $a a WHERE a.id < 5 OR EXISTS (SELECT $hint 1 FROM $b b WHERE $on)"
      case "NOT EXISTS OR" =>
        s"SELECT a.id, NOT EXISTS (SELECT 1 FROM $b b WHERE $on) OR a.k > 2 AS e FROM $a a"
      case "LEFT SEMI" | "LEFT ANTI" =>
        s"SELECT $hint a.id, a.text_s FROM $a a $joinType JOIN $b b ON $on"
      case _ =>
        s"SELECT $hint a.id, b.id, a.text_s, b.text_e FROM $a a $joinType JOIN $b b ON $on"
    }
}
