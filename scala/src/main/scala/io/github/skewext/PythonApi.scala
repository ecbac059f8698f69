package io.github.skewext

import java.lang.{Long => JLong}
import java.util.{List => JList}

import scala.collection.JavaConverters._

import io.github.skewext.explain.report.{JoinStages, QueryReport}
import io.github.skewext.explain.{Doctor, ExplanationJson}
import io.github.skewext.function.{FindingRelation, Request, TableFunctions}
import io.github.skewext.platform.{LoadedExtension, SkewConf, SparkLine}
import io.github.skewext.technique.SkewTechniques

import org.apache.spark.sql.skewext.{EventLog, SqlInternals}
import org.apache.spark.sql.{DataFrame, SparkSession}

/** The entry points that `pyspark_skewext` calls through py4j. Scala has [[implicits]]. */
object PythonApi {

  /** Whether the session was built with the extension, and therefore has all its rules. */
  def isExtensionLoaded(session: SparkSession): Boolean = LoadedExtension.isIn(session)

  /** Whether the session can run the operator: the extension is loaded, or was registered later. */
  def isOperatorAvailable(session: SparkSession): Boolean = LoadedExtension.canPlanIn(session)

  /** Why skewext does not support this version of Spark; null if it does. */
  def unsupportedSpark(): String = if (SparkLine.isOurs) null else SparkLine.unsupported

  def isEnabled(session: SparkSession): Boolean =
    SparkLine.isOurs && SkewConf.enabled(session.sessionState.conf)

  def register(session: SparkSession): Unit = {
    Joins.requireSupportedSpark()
    SkewExtensions.register(session)
  }

  /**
   * Calls a function: a join, a skew report, or a write of a bucketed table. Reports and writes are
   * done when this returns.
   *
   * @param request the function and its arguments, as JSON; see [[Request.ofJson]].
   * @param tables  the tables of the request; at least one.
   * @param inputs  the DataFrames that the tables are made of. Their sessions must run.
   */
  def run(request: String, tables: JList[DataFrame], inputs: JList[DataFrame]): DataFrame = {
    Joins.requireSupportedSpark()
    val frames = tables.asScala.toSeq
    val session = Joins.sessionOf(inputs.asScala.toSeq)
    SqlInternals.withActive(session) {
      val plans = frames.map(Joins.planOf)
      val result = TableFunctions(Request.ofJson(request, plans, runsJobs = true)) match {
        case relation: FindingRelation => relation.found(session, frames)
        case plan => plan
      }
      SqlInternals.dataFrame(session, result)
    }
  }

  /** The names of the techniques of `skew_join`. */
  def techniques(): JList[String] = SkewTechniques.all.map(_.name).asJava

  /** The names of the options of all techniques. */
  def techniqueOptions(): JList[String] = SkewTechniques.optionNames.asJava

  /** The explanation of the joins of `df`, as JSON. */
  def explain(df: DataFrame): String =
    ExplanationJson.withEntries(Joins.explain(df))

  /** The parts of skewext in a session, as JSON: which are active, and why others are off. */
  def doctor(session: SparkSession): String = Doctor.json(session)

  /** The report on the tasks of the query that ran `df`, as JSON. */
  def queryReport(df: DataFrame): String = {
    Joins.requireSupportedSpark()
    SqlInternals.withActive(df.sparkSession)(QueryReport.of(df))
  }

  /**
   * The same for a query of the running application.
   *
   * @param query the number of the query in Spark's UI; null for the last finished query with a
   *              join.
   */
  def queryReport(session: SparkSession, query: JLong): String = {
    Joins.requireSupportedSpark()
    QueryReport.of(session, Option(query).map(_.longValue))
  }

  /**
   * An event log. The first report on it reads the log, and its progress is available meanwhile.
   */
  def eventLog(session: SparkSession, path: String): EventLog = {
    Joins.requireSupportedSpark()
    new EventLog(path, session.sessionState.newHadoopConf(), JoinStages.isJoin)
  }

  /** The report on a query in an event log; null for the longest finished query with a join. */
  def queryReport(log: EventLog, query: JLong): String =
    QueryReport.of(log, Option(query).map(_.longValue))
}
