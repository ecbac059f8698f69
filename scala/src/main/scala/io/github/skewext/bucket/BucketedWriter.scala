package io.github.skewext.bucket

import java.util.Locale

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.{BucketSpec, CatalogTable, CatalogTableType}
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.execution.command.CreateDataSourceTableAsSelectCommand
import org.apache.spark.sql.execution.datasources.json.JsonFileFormat
import org.apache.spark.sql.execution.datasources.{CreateTable, DataSource, FileStatusWithMetadata, HadoopFsRelation, LogicalRelation, TextBasedFileFormat}
import org.apache.spark.sql.execution.{CommandExecutionMode, QueryExecutionException}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.SqlInternals
import org.apache.spark.sql.types._
import org.apache.spark.sql.{Column, DataFrame, SaveMode, SparkSession}

/**
 * A write of a bucketed table.
 *
 * @param table  the name, as in `saveAsTable`: a table of the session catalog.
 * @param sortBy the columns by which each file is sorted.
 * @param mode   the mode, as for `DataFrameWriter.mode`.
 * @param format the provider; if empty, the default of the session, or that of the table.
 */
final case class BucketedWrite(
    table: String,
    by: Seq[String],
    buckets: Int,
    sortBy: Seq[String],
    mode: String = "error",
    partitionBy: Seq[String] = Nil,
    format: Option[String] = None,
    options: Map[String, String] = Map.empty)

/**
 * Writes a bucketed table with one file per bucket and value of the partition columns. It first
 * shuffles the rows of a bucket to one task, by the hash that determines the bucket. The rest is
 * `DataFrameWriter.saveAsTable`.
 */
final class BucketedWriter(df: DataFrame, wanted: BucketedWrite) extends Logging {

  import wanted._

  private val session: SparkSession = df.sparkSession

  def write(): WrittenBuckets = SqlInternals.withActive(session) {
    val before = existing
    before.flatMap(_.provider).foreach(checkFormat)
    val saveMode = modeOfSpark
    if (saveMode == SaveMode.Ignore && before.isDefined) {
      WrittenBuckets.nothing(identifier.unquotedString, buckets)
    } else {
      if (before.exists(_.tableType == CatalogTableType.VIEW)) {
        throw SqlInternals.analysisError(s"'$table' is a view, and rows are written to tables.")
      }
      val appended = before.filter(_ => saveMode == SaveMode.Append)
      checkFormat(
        format
          .orElse(appended.flatMap(_.provider))
          .getOrElse(session.sessionState.conf.defaultDataSourceName))
      val filesBefore = appended.map(_ => files().map(_.getPath).toSet).getOrElse(Set.empty)
      val rowsByTask = new RowsByTask
      session.sparkContext.register(rowsByTask)
      save(saveMode, appended, rowsByTask)
      resultOf(rowsByTask.value, filesBefore)
    }
  }

  private def modeOfSpark: SaveMode = mode.toLowerCase(Locale.ROOT) match {
    // If the table does not exist, this creates it.
    case "append" => SaveMode.Append
    case "overwrite" => SaveMode.Overwrite
    case "ignore" => SaveMode.Ignore
    case "error" | "errorifexists" | "default" => SaveMode.ErrorIfExists
    case other => throw SqlInternals.analysisError(s"There is no mode '$other' of writing.")
  }

  private def resultOf(counted: Map[(Int, Int), Long], filesBefore: Set[Path]): WrittenBuckets = {
    def result(files: Seq[FileStatusWithMetadata]) = WrittenBuckets.of(
      identifier.unquotedString,
      buckets,
      WriteCheck.byBucket(counted),
      files.map(file => file.getPath.getName -> file.getLen),
      session.sessionState.conf.getConf(SQLConf.SKEW_JOIN_SKEWED_PARTITION_FACTOR))
    ownFiles(counted, filesBefore) match {
      case Some(Right(files)) => result(files)
      case Some(Left(missing)) if countsLines =>
        logWarning(
          s"The lines of $identifier do not tell which files were written: $missing. A value " +
            "may have a line break.")
        result(Nil).copy(isKnown = false)
      case Some(Left(missing)) =>
        throw new QueryExecutionException(missing.message(identifier.unquotedString))
      case None => result(Nil).copy(isKnown = false)
    }
  }

  /**
   * Checks the provider before the write starts, because for an overwrite Spark would drop a table
   * of another kind.
   */
  private def checkFormat(provider: String): Unit =
    if (!SqlInternals.writesByBucket(session, provider)) {
      throw SqlInternals.analysisError(
        s"'$table' cannot be written by bucket: buckets are made of files of Spark's own formats " +
          s"(parquet, orc, ...), and not of '$provider'.")
    }

  private lazy val identifier: TableIdentifier = {
    val parts = session.sessionState.sqlParser.parseMultipartIdentifier(table)
    val inSessionCatalog = parts match {
      case Seq(_) => session.catalog.currentCatalog() == BucketedWriter.SessionCatalog
      case Seq(first, _) =>
        session.catalog.currentCatalog() == BucketedWriter.SessionCatalog &&
        session.conf.getOption(s"spark.sql.catalog.$first").isEmpty
      case Seq(first, _, _) => first == BucketedWriter.SessionCatalog
      case _ => false
    }
    if (!inSessionCatalog) {
      throw SqlInternals.analysisError(
        s"'$table' is not in the session catalog (${BucketedWriter.SessionCatalog}); Spark's own " +
          "bucketed tables are only there.")
    }
    val isPath = parts.last.contains("/") &&
      parts.dropRight(1).lastOption.exists(!session.sessionState.catalog.databaseExists(_))
    if (isPath || SqlInternals.isOfOtherCatalog(session, parts.takeRight(2))) {
      throw SqlInternals.analysisError(
        s"'$table' cannot be written by bucket: it is not a table of Spark's own catalog.")
    }
    session.sessionState.catalog
      .qualifyIdentifier(TableIdentifier(parts.last, parts.dropRight(1).lastOption))
  }

  private def existing: Option[CatalogTable] = {
    val catalog = session.sessionState.catalog
    if (catalog.tableExists(identifier)) Some(catalog.getTableMetadata(identifier)) else None
  }

  private def save(
      saveMode: SaveMode,
      appended: Option[CatalogTable],
      rowsByTask: RowsByTask): Unit = {
    val count = udf((bucket: Int) => rowsByTask.addRow(bucket)).asNondeterministic()
    val bucket = pmod(hash(by.map(stored(_, appended)): _*), lit(buckets))
    val rows = together(appended).where(count(bucket))
    // Spark wants to be told what the table is made of, unless that is its default.
    val provider = format.orElse(appended.flatMap(_.provider))
    val isStaged = appended.flatMap(StagedCommitter.options(session, _)).exists { staging =>
      append(rows, provider, staging)
    }
    if (!isStaged) {
      val writer =
        rows.write.mode(saveMode).options(options).bucketBy(buckets, by.head, by.tail: _*)
      provider.foreach(writer.format)
      if (sortBy.nonEmpty) writer.sortBy(sortBy.head, sortBy.tail: _*)
      if (partitionBy.nonEmpty) writer.partitionBy(partitionBy: _*)
      writer.saveAsTable(table)
    }
  }

  /**
   * Appends as `saveAsTable` does, with options that are those of this write and not of the table: what
   * one gives `saveAsTable` Spark ignores where the table exists.
   *
   * @return whether it has; not where Spark would take another way
   */
  private def append(
      rows: DataFrame,
      provider: Option[String],
      staging: Map[String, String]): Boolean = {
    val asWritten = CatalogTable(
      identifier,
      CatalogTableType.MANAGED,
      DataSource.buildStorageFormatFromOptions(options),
      new StructType,
      provider,
      partitionBy,
      Some(BucketSpec(buckets, by, sortBy)))
    val state = session.sessionState
    val create = CreateTable(asWritten, SaveMode.Append, Some(rows.queryExecution.analyzed))
    state.executePlan(create, CommandExecutionMode.SKIP).analyzed match {
      case command: CreateDataSourceTableAsSelectCommand =>
        val storage = command.table.storage
        val staged = storage.copy(properties = storage.properties ++ staging)
        state
          .executePlan(command.copy(table = command.table.copy(storage = staged)))
          .assertCommandExecuted()
        true
      case _ => false
    }
  }

  /** Shuffles the rows of each file to one task. */
  private def together(appended: Option[CatalogTable]): DataFrame = {
    val bucketValues = by.map(stored(_, appended))
    if (partitionBy.isEmpty) {
      // Task i writes bucket i. The null does not change the hash. It prevents Spark from removing
      // this shuffle if the rows come from a join on the same columns, whose partitions adaptive
      // execution may split.
      df.repartition(buckets, bucketValues :+ lit(null).cast(IntegerType): _*)
    } else {
      // There are more tasks than buckets, and each opens the files of some partitions only.
      val partitionValues = partitionBy.map { name =>
        val value = stored(name, appended)
        // Spark writes an empty string as null.
        if (storedType(name, appended) == StringType) when(value =!= "", value) else value
      }
      df.repartition(partitionValues :+ pmod(hash(bucketValues: _*), lit(buckets)): _*)
    }
  }

  /** A column with the type in the table, for which Spark computes the bucket. */
  private def stored(name: String, appended: Option[CatalogTable]): Column = {
    // Dataset.col may read a quoted name as a regular expression.
    val column = col(BucketedWriter.quoted(name))
    columnOf(name, appended) match {
      case Some(f) =>
        CharVarcharUtils.getRawType(f.metadata).getOrElse(f.dataType) match {
          case char: CharType => rpad(column.cast(StringType), char.length, " ")
          case text: VarcharType => column.cast(StringType).substr(1, text.length)
          case other if other == typeOf(name) => column
          case other => column.cast(other)
        }
      case None => column
    }
  }

  private def storedType(name: String, appended: Option[CatalogTable]): DataType =
    columnOf(name, appended).fold(typeOf(name))(_.dataType)

  private def columnOf(name: String, appended: Option[CatalogTable]): Option[StructField] =
    appended.flatMap(_.schema.find(f => resolver(f.name, name)))

  private def typeOf(name: String): DataType =
    df.schema.find(f => resolver(f.name, name)).map(_.dataType).getOrElse(NullType)

  private def resolver: (String, String) => Boolean = session.sessionState.conf.resolver

  private def files(refreshed: Boolean = false): Seq[FileStatusWithMetadata] = {
    val location = relation.location
    if (refreshed) location.refresh()
    location.listFiles(Nil, Nil).flatMap(_.files)
  }

  private def relation: HadoopFsRelation = session
    .table(identifier.quotedString)
    .queryExecution
    .analyzed
    .collect { case scan: LogicalRelation => scan.relation }
    .collectFirst { case files: HadoopFsRelation => files }
    .getOrElse(throw SqlInternals.analysisError(
      s"The table ${identifier.unquotedString} is not made of files that Spark writes by bucket."))

  /** Whether a row may be read as several lines, or as none. In JSON it is always one line. */
  private def countsLines: Boolean = relation.fileFormat match {
    case _: JsonFileFormat => false
    case _: TextBasedFileFormat => true
    case _ => false
  }

  /** The files of this write, or the rows that the table lacks; None if they cannot be counted. */
  private def ownFiles(
      counted: Map[(Int, Int), Long],
      before: Set[Path]): Option[Either[WriteCheck.Missing, Seq[FileStatusWithMetadata]]] = {
    def own(refreshed: Boolean) = {
      val added = files(refreshed).filterNot(file => before.contains(file.getPath))
      WriteCheck.ownFiles(counted, rowsByFile(added), BucketedWriter.claim).map { names =>
        added.filter(file => names(file.getPath.getName))
      }
    }
    try {
      // Another write may have listed the files for all, just before this one was committed.
      Some(own(refreshed = false).left.flatMap(_ => own(refreshed = true)))
    } catch {
      // Whoever takes an error for a write that failed writes all rows a second time.
      case e @ (NonFatal(_) | _: InterruptedException) =>
        if (e.isInstanceOf[InterruptedException]) Thread.currentThread().interrupt()
        logWarning(s"$identifier is written, but its new files could not be counted.", e)
        None
    }
  }

  /**
   * The number of rows per file name. It reads no column: the counts are in the files' metadata, if
   * the format has one.
   */
  private def rowsByFile(written: Seq[FileStatusWithMetadata]): Map[String, Long] =
    if (written.isEmpty) {
      Map.empty
    } else {
      val stored = existing.get
      session.read
        .format(stored.provider.get)
        .schema(relation.dataSchema)
        .options(stored.storage.properties.filterNot(_._1.equalsIgnoreCase("path")))
        .option(DataSource.GLOB_PATHS_KEY, "false")
        .load(written.map(_.getPath.toString): _*)
        .groupBy(input_file_name())
        // Spark may leave out grouping columns.
        .agg(min(input_file_name()).as("file"), count(lit(1)).as("rows"))
        .select("file", "rows")
        .collect()
        .map(row => (row.getString(0).split('/').last, row.getLong(1)))
        .groupBy { case (name, _) => name }
        .map { case (name, counts) => name -> counts.map(_._2).sum }
    }
}

private object BucketedWriter {
  private val SessionCatalog = "spark_catalog"

  private val MaxClaims = 10000

  /** The writes whose files a call has taken for its own, the last ones. */
  private val claimed = new java.util.LinkedHashMap[String, Unit] {
    override def removeEldestEntry(eldest: java.util.Map.Entry[String, Unit]): Boolean =
      size > MaxClaims
  }

  private def claim(write: String): Boolean = claimed.synchronized {
    !claimed.containsKey(write) && {
      claimed.put(write, ())
      true
    }
  }

  private def quoted(name: String): String = s"`${name.replace("`", "``")}`"
}
