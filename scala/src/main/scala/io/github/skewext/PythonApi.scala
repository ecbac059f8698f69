package io.github.skewext

import java.lang.{Long => JLong}
import java.util.{List => JList, Map => JMap}

import scala.collection.JavaConverters._

import io.github.skewext.Joins.listed
import io.github.skewext.bucket.{BucketedWriter, WrittenBuckets}
import io.github.skewext.explain.report.{JoinStages, QueryReport, SkewReport}
import io.github.skewext.explain.{Doctor, ExplanationJson}
import io.github.skewext.platform.{LoadedExtension, SkewConf, SparkLine}
import io.github.skewext.technique.SkewTechniques

import org.apache.spark.sql.skewext.{EventLog, SqlInternals}
import org.apache.spark.sql.{Column, DataFrame, SparkSession}

/**
 * The entry points that `pyspark_skewext` calls through py4j. They convert Java types and delegate
 * to other classes. Scala has [[implicits]], and Java has [[Skewext]].
 */
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
   * [[Skewext.multiJoin]], with a role for each input.
   *
   * @param keys the names of each input's key columns.
   * @param keyNames the names of the key columns in the result.
   */
  def multiJoin(
      inputs: JList[DataFrame],
      keys: JList[JList[String]],
      keyNames: JList[String],
      roles: JList[String],
      suffixes: JList[String],
      indicator: String): DataFrame =
    Joins.multiJoin(
      inputs.asScala.toSeq.zipWithIndex.map { case (frame, i) =>
        JoinInput(frame, keys.get(i).asScala.toSeq)
      },
      keyNames.asScala.toSeq,
      roles.asScala.toSeq,
      listed(suffixes),
      Option(indicator))

  /**
   * The as-of join of `spine` with tables of versions. All lists have an element for each table of
   * versions.
   *
   * @param directions `backward`, `forward` or `nearest`.
   * @param tolerances null, or a constant: how far a version may be from a row of the spine.
   * @param exactMatches whether a version at the time of the spine's row matches.
   * @param ties null, or columns or orders: among versions of one time the first one counts.
   * @param how `left` or `inner`.
   * @param suffixes null, or for the spine and every table null or a suffix for columns whose name
   *                 occurs in another input, too.
   */
  def asOfJoin(
      spine: DataFrame,
      versions: JList[DataFrame],
      spineKeys: JList[JList[String]],
      versionKeys: JList[JList[String]],
      spineTime: String,
      times: JList[String],
      directions: JList[String],
      tolerances: JList[Column],
      exactMatches: JList[java.lang.Boolean],
      ties: JList[JList[Column]],
      how: String,
      suffixes: JList[String]): DataFrame = {
    val tables = versions.asScala.toSeq.zipWithIndex.map { case (frame, i) =>
      AsOf(
        frame,
        times.get(i),
        versionKeys.get(i).asScala.toSeq,
        spineKeys.get(i).asScala.toSeq,
        directions.get(i),
        Option(tolerances.get(i)),
        exactMatches.get(i),
        listed(ties.get(i)))
    }
    Joins.asOfJoin(spine, tables, Nil, spineTime, how, listed(suffixes))
  }

  /** [[Skewext.latest]] of a DataFrame. */
  def latest(
      df: DataFrame,
      keys: JList[String],
      by: JList[Column],
      ties: JList[Column]): DataFrame =
    Joins.latest(df, keys.asScala.toSeq, by.asScala.toSeq, listed(ties))

  /** The names of the techniques for [[skewJoin]]. */
  def techniques(): JList[String] = SkewTechniques.all.map(_.name).asJava

  /** The names of the options of all techniques. */
  def techniqueOptions(): JList[String] = SkewTechniques.optionNames.asJava

  /**
   * The join of two DataFrames by a technique against skew.
   *
   * @param on the names of columns that both have, or a [[Column]] that compares them.
   * @param how the join type, as for `DataFrame.join`.
   * @param options the options of the technique, as text.
   * @param hotKeys null, or keys with many rows, each with a literal for every key column.
   */
  def skewJoin(
      left: DataFrame,
      right: DataFrame,
      on: Any,
      how: String,
      technique: String,
      options: JMap[String, String],
      hotKeys: JList[JList[Column]]): DataFrame = {
    val condition = on match {
      case column: Column => Right(column)
      case names: JList[_] => Left(names.asScala.toSeq.map(_.toString))
    }
    val hot = listed(hotKeys).map(_.map(_.asScala.toSeq))
    Joins.skewJoin(left, right, condition, how, Technique(technique, options.asScala.toMap, hot))
  }

  /** The explanation of the joins of `df`, as JSON. */
  def explain(df: DataFrame): String =
    ExplanationJson.withEntries(Joins.explain(df))

  /** The parts of skewext in a session, as JSON: which are active, and why others are off. */
  def doctor(session: SparkSession): String = Doctor.json(session)

  /**
   * The skew of a key, in one input or in a join of two.
   *
   * @param keys the names of each input's key columns.
   * @param partitions null, or the assumed number of shuffle partitions.
   * @param minShare the report contains all keys with more than this fraction of an input's rows.
   * @param withBytes whether to measure the size of rows, which reads all columns.
   */
  def skewReport(
      inputs: JList[DataFrame],
      keys: JList[JList[String]],
      partitions: Integer,
      minShare: Double,
      withBytes: Boolean): SkewReport = {
    Joins.requireSupportedSpark()
    val frames = inputs.asScala.toSeq
    SkewReport.of(
      Joins.sessionOf(frames),
      frames,
      keys.asScala.toSeq.map(_.asScala.toSeq),
      Option(partitions).map(_.intValue),
      minShare,
      withBytes)
  }

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

  /**
   * Writes `df` to a bucketed table with one file per bucket.
   *
   * @param format null, or the provider of the table.
   * @param sortBy the columns by which each file is sorted; may be empty.
   * @param mode the mode, as for `DataFrameWriter.mode`.
   */
  def writeBucketed(
      df: DataFrame,
      table: String,
      format: String,
      by: JList[String],
      buckets: Int,
      sortBy: JList[String],
      mode: String,
      partitionBy: JList[String],
      options: JMap[String, String]): WrittenBuckets = {
    Joins.requireSupportedSpark()
    new BucketedWriter(
      df,
      table,
      Option(format),
      by.asScala.toSeq,
      buckets,
      sortBy.asScala.toSeq,
      mode,
      partitionBy.asScala.toSeq,
      options.asScala.toMap).write()
  }
}
