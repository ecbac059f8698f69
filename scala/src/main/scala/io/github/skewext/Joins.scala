package io.github.skewext

import io.github.skewext.asof.{AsOfJoinBuilder, AsOfTable}
import io.github.skewext.explain.{Explainer, Explanation}
import io.github.skewext.join.{InputRole, MultiFullJoinBuilder}
import io.github.skewext.latest.LatestRowsBuilder
import io.github.skewext.platform.SparkLine
import io.github.skewext.technique.SkewJoinBuilder
import io.github.skewext.technique.hint.{HotKey, TechniqueOptions}

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.skewext.{SparkShims, SqlInternals}
import org.apache.spark.sql.{Column, DataFrame, SparkSession}

/**
 * The joins behind the entry points of Scala and Python: it chooses the session, and calls the
 * builders of plans.
 */
private[skewext] object Joins {

  /** @param how a name for all inputs, or a role for each of them. */
  def multiJoin(
      inputs: Seq[JoinInput],
      on: Seq[String],
      how: Seq[String],
      suffixes: Option[Seq[String]],
      indicator: Option[String]): DataFrame = {
    requireSupportedSpark()
    if (inputs.isEmpty) {
      throw SqlInternals.analysisError("A multi-way join needs at least two inputs, got none.")
    }
    val session = sessionOf(inputs.map(_.frame))
    val builder = new MultiFullJoinBuilder(
      session,
      inputs.map(input => planOf(input.frame)),
      inputs.map(input => if (input.keys.isEmpty) on else input.keys),
      on,
      InputRole.ofAll(how, inputs.size),
      suffixes.map(_.map(Option(_).getOrElse(""))),
      indicator)
    SqlInternals.withActive(session)(SqlInternals.dataFrame(session, builder.build()))
  }

  def asOfJoin(
      spine: DataFrame,
      versions: Seq[AsOf],
      on: Seq[String],
      time: String,
      how: String,
      suffixes: Option[Seq[String]]): DataFrame = {
    requireSupportedSpark()
    val session = sessionOf(spine +: versions.map(_.frame))
    val tables = versions.map { each =>
      val spineKeys = if (each.spineKeys.isEmpty) on else each.spineKeys
      AsOfTable(
        planOf(each.frame),
        spineKeys,
        if (each.keys.isEmpty) spineKeys else each.keys,
        each.time,
        each.towards,
        each.within.map(SparkShims.expression),
        each.exact,
        each.order.map(expressions))
    }
    val builder = new AsOfJoinBuilder(session, planOf(spine), tables, time, how, suffixes)
    SqlInternals.dataFrame(session, builder.build())
  }

  def latest(
      df: DataFrame,
      keys: Seq[String],
      by: Seq[Column],
      ties: Option[Seq[Column]]): DataFrame = {
    requireSupportedSpark()
    val session = sessionOf(Seq(df))
    val plan =
      LatestRowsBuilder.build(session, planOf(df), keys, expressions(by), ties.map(expressions))
    SqlInternals.dataFrame(session, plan)
  }

  def skewJoin(
      left: DataFrame,
      right: DataFrame,
      on: Either[Seq[String], Column],
      how: String,
      technique: Technique): DataFrame = {
    requireSupportedSpark()
    sessionOf(Seq(left, right))
    val given = TechniqueOptions(
      technique.options,
      technique.keys.map(_.map(key => HotKey(expressions(key)))))
    SkewJoinBuilder.build(left, right, on, how, technique.name, given)
  }

  def explain(df: DataFrame): Explanation =
    SqlInternals.withActive(df.sparkSession)(Explainer.explain(df.queryExecution))

  def requireSupportedSpark(): Unit =
    if (!SparkLine.isOurs) throw SqlInternals.analysisError(SparkLine.unsupported)

  /**
   * The session that plans and runs a query over all `frames`: that of the first, as in
   * `Dataset.join`. The others may be of any session of the same SparkContext: `foreachBatch` gives
   * a batch in a clone of the session that static tables are read in.
   *
   * The operators are registered there: the session may have been built without the extension, and
   * the plan of another frame may have one of them.
   */
  def sessionOf(frames: Seq[DataFrame]): SparkSession = {
    frames.zipWithIndex.foreach { case (frame, i) =>
      if (frame.sparkSession.sparkContext.isStopped) {
        throw SqlInternals.analysisError(
          s"Input $i (counting from 0) belongs to a SparkSession that is stopped; read it again in " +
            "a session that runs.")
      }
    }
    val session = frames.head.sparkSession
    SkewExtensions.register(session)
    session
  }

  /** The plan of an input: for a command, its result. Its analyzed plan would run it again. */
  def planOf(frame: DataFrame): LogicalPlan = frame.queryExecution.commandExecuted

  private def expressions(columns: Seq[Column]): Seq[Expression] =
    columns.map(SparkShims.expression)
}
