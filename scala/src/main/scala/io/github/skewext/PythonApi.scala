package io.github.skewext

import java.lang.{Long => JLong}
import java.util.{List => JList, Map => JMap}

import scala.collection.JavaConverters._

import io.github.skewext.bucket.{BucketedWriter, WrittenBuckets}
import io.github.skewext.explain.Explainer
import io.github.skewext.internal.{Guard, LoadedExtension, SkewConf, SparkLine}
import io.github.skewext.plan.{HotKey, InputRole, MultiFullJoinBuilder, TechniqueOptions}
import io.github.skewext.report.{QueryReport, SkewReport}
import io.github.skewext.technique.{SkewJoinBuilder, SkewTechniques}

import org.apache.spark.sql.skewext.{EventLog, SparkShims, SqlInternals}
import org.apache.spark.sql.{Column, DataFrame, SparkSession}

/**
 * What `pyspark_skewext` calls through py4j: Java types in, DataFrames out. It decides nothing; the
 * classes behind it do, and Scala users may call it as well.
 */
object PythonApi {

  /** Whether the session was built with the extension, and so has all its rules. */
  def isExtensionLoaded(session: SparkSession): Boolean = LoadedExtension.isIn(session)

  /** Whether the session can run the operator: the extension is loaded, or was registered late. */
  def isOperatorAvailable(session: SparkSession): Boolean = LoadedExtension.canPlanIn(session)

  /** Why nothing of ours can run on this Spark; null if it can. */
  def unsupportedSpark(): String = if (Guard.sparkIsSupported) null else SparkLine.unsupported

  def isEnabled(session: SparkSession): Boolean =
    Guard.sparkIsSupported && SkewConf.enabled(session.sessionState.conf)

  def register(session: SparkSession): Unit = {
    requireSupportedSpark()
    SkewExtensions.register(session)
  }

  /**
   * The N-way join of `inputs`.
   *
   * @param keys the names of each input's key columns
   * @param keyNames the names of the key columns in the result
   * @param roles a role name for every input, see [[InputRole]]
   * @param suffixes null, or for every input null or what to append to a column whose name occurs
   *                 in another input too
   * @param indicator null, or the name of a column with the positions of the inputs that had the key
   */
  def multiJoin(
      inputs: JList[DataFrame],
      keys: JList[JList[String]],
      keyNames: JList[String],
      roles: JList[String],
      suffixes: JList[String],
      indicator: String): DataFrame = {
    requireSupportedSpark()
    val frames = inputs.asScala.toSeq
    if (frames.isEmpty) {
      throw SqlInternals.analysisError("A multi-way join needs at least two inputs, got none.")
    }
    val session = sessionOf(frames, "a multi-way join")
    // A session that was not built with the extension can still run the operator.
    SkewExtensions.register(session)
    val builder = new MultiFullJoinBuilder(
      session,
      // What a command has given, where it is one: its analyzed plan would run it again.
      frames.map(_.queryExecution.commandExecuted),
      keys.asScala.toSeq.map(_.asScala.toSeq),
      keyNames.asScala.toSeq,
      roles.asScala.toSeq.map { name =>
        InputRole
          .fromName(name)
          .getOrElse(throw SqlInternals.analysisError(
            s"There is no role '$name'; the roles are ${InputRole.public.map(_.name).mkString(", ")}."))
      },
      Option(suffixes).map(_.asScala.toSeq.map(Option(_).getOrElse(""))),
      Option(indicator))
    SqlInternals.withActive(session)(SqlInternals.dataFrame(session, builder.build()))
  }

  /** The names of the techniques that [[skewJoin]] knows. */
  def techniques(): JList[String] = SkewTechniques.all.map(_.name).asJava

  /** The names of all options that some technique takes. */
  def techniqueOptions(): JList[String] =
    SkewTechniques.all.flatMap(_.optionNames).distinct.asJava

  /**
   * The join of two DataFrames by a technique against skew.
   *
   * @param on the names of columns that both have, or a [[Column]] that compares them
   * @param how as `DataFrame.join` takes it
   * @param options of the technique, as text
   * @param hotKeys null, or keys with many rows, each with a literal for every key column
   */
  def skewJoin(
      left: DataFrame,
      right: DataFrame,
      on: Any,
      how: String,
      technique: String,
      options: JMap[String, String],
      hotKeys: JList[JList[Column]]): DataFrame = {
    requireSupportedSpark()
    // A session that was not built with the extension can still plan salts.
    SkewExtensions.register(sessionOf(Seq(left, right), "skew_join"))
    val condition = on match {
      case column: Column => Right(column)
      case names: JList[_] => Left(names.asScala.toSeq.map(_.toString))
    }
    val hot = Option(hotKeys).map(
      _.asScala.toSeq.map(key => HotKey(key.asScala.toSeq.map(SparkShims.expression))))
    val given = TechniqueOptions(options.asScala.toMap, hot)
    SkewJoinBuilder.build(left, right, condition, how, technique, given)
  }

  /** What became of the joins of `df`, as JSON. */
  def explain(df: DataFrame): String =
    SqlInternals.withActive(df.sparkSession)(Explainer.explain(df.queryExecution)).json

  /**
   * Where the skew of a key is: in one input, or in a join of two.
   *
   * @param keys the names of each input's key columns
   * @param partitions null, or into how many partitions a shuffle is taken to go
   * @param minShare keys with more than this share of an input's rows are all found
   * @param withBytes whether to measure rows, for which all columns have to be read
   */
  def skewReport(
      inputs: JList[DataFrame],
      keys: JList[JList[String]],
      partitions: Integer,
      minShare: Double,
      withBytes: Boolean): SkewReport = {
    requireSupportedSpark()
    val frames = inputs.asScala.toSeq
    SkewReport.of(
      sessionOf(frames, "a report"),
      frames,
      keys.asScala.toSeq.map(_.asScala.toSeq),
      Option(partitions).map(_.intValue),
      minShare,
      withBytes)
  }

  /** How the tasks of the query were that ran `df`, as JSON. */
  def queryReport(df: DataFrame): String = {
    requireSupportedSpark()
    SqlInternals.withActive(df.sparkSession)(QueryReport.of(df))
  }

  /**
   * The same of a query of the running application.
   *
   * @param query null, or its number in Spark's UI
   */
  def queryReport(session: SparkSession, query: JLong): String = {
    requireSupportedSpark()
    QueryReport.of(session, Option(query).map(_.longValue))
  }

  /** An event log, which is read when it is asked for a report; meanwhile it tells how far that is. */
  def eventLog(session: SparkSession, path: String): EventLog = {
    requireSupportedSpark()
    new EventLog(path, session.sessionState.newHadoopConf())
  }

  /** The report on a query in an event log; null for the longest one that has a join. */
  def queryReport(log: EventLog, query: JLong): String =
    QueryReport.of(log, Option(query).map(_.longValue))

  /**
   * Writes `df` to a bucketed table with one file a bucket.
   *
   * @param format null, or the provider of the table
   * @param sortBy the columns that each file is sorted by; empty for none
   * @param mode as of `DataFrameWriter.mode`
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
    requireSupportedSpark()
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

  private def sessionOf(frames: Seq[DataFrame], what: String): SparkSession = {
    val session = frames.head.sparkSession
    frames.zipWithIndex.foreach { case (frame, i) =>
      if (frame.sparkSession ne session) {
        throw SqlInternals.analysisError(
          s"Input $i (counting from 0) belongs to another SparkSession than input 0; all inputs " +
            s"of $what must come from one session.")
      }
    }
    session
  }

  private def requireSupportedSpark(): Unit =
    if (!Guard.sparkIsSupported) throw SqlInternals.analysisError(SparkLine.unsupported)
}
