package io.github.skewext.asof

import java.util.{List => JList}

import scala.collection.JavaConverters._

import io.github.skewext.asof.exec.{AsOfJoinExec, AsOfOperator}
import io.github.skewext.{MultiJoinTest, PythonApi}

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

  private def list(columns: Seq[Column]): JList[Column] =
    if (columns == null) null else columns.asJava

  protected def asOf(
      spine: DataFrame,
      time: String,
      how: String = "left",
      suffixes: Seq[String] = null)(versions: Versions*): DataFrame =
    PythonApi.asOfJoin(
      spine,
      versions.map(_.df).asJava,
      versions.map(_.spineKeys.asJava).asJava,
      versions.map(_.keys.asJava).asJava,
      time,
      versions.map(_.time).asJava,
      versions.map(_.direction).asJava,
      versions.map(v => if (v.tolerance == null) null else expr(v.tolerance)).asJava,
      versions.map(v => Boolean.box(v.exact)).asJava,
      versions.map(v => list(v.ties)).asJava,
      how,
      if (suffixes == null) null else suffixes.asJava)

  protected def latest(df: DataFrame, keys: String*)(by: Column*)(ties: Column*): DataFrame =
    PythonApi.latest(df, keys.asJava, by.asJava, if (ties.isEmpty) null else ties.asJava)

  protected def joins(df: DataFrame): Seq[AsOfJoinExec] =
    asOfOperators(df).collect { case join: AsOfJoinExec => join }

  protected def asOfOperators(df: DataFrame): Seq[AsOfOperator] =
    collectWithSubqueries(df.queryExecution.executedPlan) { case join: AsOfOperator => join }
}
