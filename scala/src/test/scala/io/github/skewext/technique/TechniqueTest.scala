package io.github.skewext.technique

import io.github.skewext.facts.KeptInPlace
import io.github.skewext.platform.Reason
import io.github.skewext.skew.SkewTest
import io.github.skewext.technique.hint.TechniqueHint
import io.github.skewext.{Joins, Technique}

import org.apache.spark.sql.execution.exchange.BroadcastExchangeLike
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{Column, DataFrame, Row}

/** Joins by techniques, and what Spark makes of the same joins. */
trait TechniqueTest extends SkewTest {

  override protected def byColumn: Boolean = true

  override protected def generatesCode: Boolean = false

  protected val Hows: Seq[String] =
    Seq("inner", "left", "right", "full", "left_semi", "left_anti")

  protected def skewJoin(
      left: DataFrame,
      right: DataFrame,
      on: Any,
      how: String,
      technique: String,
      options: Map[String, String] = Map.empty,
      hotKeys: Seq[Seq[Column]] = null): DataFrame = {
    val compared = on match {
      case name: String => Left(Seq(name))
      case names: Seq[_] => Left(names.map(_.toString))
      case condition: Column => Right(condition)
    }
    Joins.skewJoin(left, right, compared, how, Technique(technique, options, Option(hotKeys)))
  }

  protected def stockJoin(left: DataFrame, right: DataFrame, on: Any, how: String): DataFrame =
    on match {
      case name: String => left.join(right, Seq(name), how)
      case names: Seq[_] => left.join(right, names.map(_.toString), how)
      case condition: Column => left.join(right, condition, how)
    }

  /** Runs the join by the technique: its rows and its columns must be those of Spark's own. */
  protected def check(
      left: DataFrame,
      right: DataFrame,
      on: Any,
      how: String,
      technique: String,
      options: Map[String, String] = Map.empty): DataFrame = {
    val df = skewJoin(left, right, on, how, technique, options)
    assertStock(df, stockJoin(left, right, on, how))
    df
  }

  protected def assertStock(df: DataFrame, stock: DataFrame): Unit =
    assertStock(df, stock.schema, rowsWhenOff(stock))

  protected def assertStock(df: DataFrame, schema: StructType, rows: Seq[Row]): Unit = {
    assert(df.schema === schema)
    assertSameRows(df.collect().toSeq, rows, "Spark's own join")
  }

  /** What techniques have left on the joins of the optimized plan. */
  protected def contents(df: DataFrame): Seq[TechniqueHint.Content] =
    df.queryExecution.optimizedPlan.collect { case node => TechniqueHint.of(node) }.flatten

  protected def made(df: DataFrame): Seq[String] = contents(df).collect {
    case TechniqueHint.Made(technique, _, _, _) => technique
  }

  protected def refusals(df: DataFrame): Seq[Reason] = contents(df).collect {
    case TechniqueHint.Refused(_, Reason.Detailed(reason, _)) => reason
  }

  /**
   * A table with a number as the key, and a side whose key is text. The joins of the side drop the
   * text that is no number.
   */
  protected def numbersAndText: (DataFrame, DataFrame) = {
    val numbers = table("k, v", "(5, 1), (5, 2), (6, 3), (CAST(null AS int), 4)")
    val text = table("id, s", "(1, '5'), (2, 'abc'), (3, '7'), (4, CAST(null AS string))")
    (numbers, text.join(table("id", "(1), (3), (4)"), "id").select("s", "id"))
  }

  /** Whether the plan has an expression that Spark may not push below joins. */
  protected def isKeptInPlace(df: DataFrame): Boolean =
    df.queryExecution.optimizedPlan.exists(
      _.expressions.exists(_.exists(_.isInstanceOf[KeptInPlace])))

  /** @param onSide the options of a technique for one side. */
  protected def checkCastsInSides(
      technique: String,
      onSide: String => Map[String, String]): Unit = {
    val (numbers, text) = numbersAndText
    withSQLConf("spark.sql.ansi.enabled" -> "true") {
      val cast = text.selectExpr("CAST(s AS INT) AS k", "id")
      for (side <- Seq("left", "right")) {
        for ((l, r) <- Seq(numbers -> cast, cast -> numbers))
          assert(isKeptInPlace(check(l, r, "k", "full", technique, onSide(side))))
        // Spark's own joins infer predicates on the keys of a right side.
        for (how <- Seq("left", "left_anti"))
          check(cast, numbers, "k", how, technique, onSide(side))
      }
      // Nothing drops rows before this cast.
      val all = table("s, id", "('5', 1), ('7', 2)").selectExpr("CAST(s AS INT) AS k", "id")
      assert(!isKeptInPlace(check(numbers, all, "k", "full", technique, onSide("right"))))
    }
    withSQLConf("spark.sql.ansi.enabled" -> "false") {
      val cast = text.selectExpr("CAST(s AS INT) AS k", "id")
      assert(!isKeptInPlace(check(numbers, cast, "k", "full", technique, onSide("right"))))
    }
  }

  protected def broadcasts(df: DataFrame): Int =
    collectWithSubqueries(df.queryExecution.executedPlan) { case b: BroadcastExchangeLike =>
      b
    }.size
}
