package io.github.skewext.asof

import io.github.skewext.asof.exec.{AsOfJoinExec, AsOfOperator}
import io.github.skewext.{AsOf, Joins, MultiJoinTest}

import org.apache.spark.sql.functions.expr
import org.apache.spark.sql.{Column, DataFrame}

/** As-of joins and latest rows by their entry points. */
trait AsOfTest extends MultiJoinTest {

  /**
   * A table of versions with its arguments.
   *
   * @param spineKeys the keys of the spine, if they have other names
   */
  protected case class Versions(
      df: DataFrame,
      time: String,
      direction: String = "backward",
      tolerance: String = null,
      exact: Boolean = true,
      ties: Seq[Column] = null,
      keys: Seq[String] = Seq("k"),
      spineKeys: Seq[String] = Seq("k"))

  protected def asOf(
      spine: DataFrame,
      time: String,
      how: String = "left",
      suffixes: Seq[String] = null)(versions: Versions*): DataFrame =
    Joins.asOfJoin(
      spine,
      versions.map { v =>
        val within = Option(v.tolerance).map(expr(_))
        AsOf(v.df, v.time, v.keys, v.spineKeys, v.direction, within, v.exact, Option(v.ties))
      },
      Nil,
      time,
      how,
      Option(suffixes))

  protected def latest(df: DataFrame, keys: String*)(by: Column*)(ties: Column*): DataFrame =
    Joins.latest(df, keys, by, Option(ties).filter(_.nonEmpty))

  protected def joins(df: DataFrame): Seq[AsOfJoinExec] =
    asOfOperators(df).collect { case join: AsOfJoinExec => join }

  protected def asOfOperators(df: DataFrame): Seq[AsOfOperator] =
    collectWithSubqueries(df.queryExecution.executedPlan) { case join: AsOfOperator => join }
}
