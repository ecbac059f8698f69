package io.github.skewext.bucket

import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.execution.datasources.{DataSource, FileStatusWithMetadata, HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.SqlInternals
import org.apache.spark.sql.types._
import org.apache.spark.sql.{Column, DataFrame, SaveMode, SparkSession}

/**
 * Writes a bucketed table with one file per bucket and value of the partition columns. It first
 * shuffles the rows of a bucket to one task, by the hash that determines the bucket. The rest is
 * `DataFrameWriter.saveAsTable`.
 *
 * @param table the name, as in `saveAsTable`: a table of the session catalog.
 * @param format the provider; if empty, the default of the session, or that of the table.
 * @param sortBy the columns by which each file is sorted.
 */
final class BucketedWriter(
    df: DataFrame,
    table: String,
    format: Option[String],
    by: Seq[String],
    buckets: Int,
    sortBy: Seq[String],
    mode: String,
    partitionBy: Seq[String],
    options: Map[String, String])
    extends Logging {

  private val session: SparkSession = df.sparkSession

  def write(): WrittenBuckets = SqlInternals.withActive(session) {
    val before = existing
    before.flatMap(_.provider).foreach(checkFormat)
    val saveMode = mode match {
      // If the table does not exist, this creates it.
      case "append" => SaveMode.Append
      case "overwrite" => SaveMode.Overwrite
      case "ignore" => SaveMode.Ignore
      case "error" | "errorifexists" | "default" => SaveMode.ErrorIfExists
      case other => throw SqlInternals.analysisError(s"There is no mode '$other' of writing.")
    }
    val factor = session.sessionState.conf.getConf(SQLConf.SKEW_JOIN_SKEWED_PARTITION_FACTOR)
    if (saveMode == SaveMode.Ignore && before.isDefined) {
      WrittenBuckets.nothing(identifier.unquotedString, buckets)
    } else {
      checkFormat(format.getOrElse(session.sessionState.conf.defaultDataSourceName))
      val appended = before.filter(_ => saveMode == SaveMode.Append)
      val filesBefore = appended.map(_ => files().map(_.getPath).toSet).getOrElse(Set.empty)
      val rowsByTask = new RowsByTask
      session.sparkContext.register(rowsByTask)
      save(saveMode, appended, rowsByTask)
      try {
        val added = files().filterNot(file => filesBefore.contains(file.getPath))
        val (own, rows) = writtenBy(rowsByTask.value, added)
        WrittenBuckets.of(
          identifier.unquotedString,
          buckets,
          own.map(file => file.getPath.getName -> file.getLen),
          rows,
          factor)
      } catch {
        // Whoever takes an error for a write that failed writes all rows a second time.
        case e @ (NonFatal(_) | _: InterruptedException) =>
          if (e.isInstanceOf[InterruptedException]) Thread.currentThread().interrupt()
          logWarning(s"$identifier is written, but what is in its buckets is not known.", e)
          WrittenBuckets.unknown(identifier.unquotedString, factor)
      }
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
    val count = udf(() => rowsByTask.addRow()).asNondeterministic()
    val writer = together(appended)
      .where(count())
      .write
      .mode(saveMode)
      .options(options)
      .bucketBy(buckets, by.head, by.tail: _*)
    format.foreach(writer.format)
    // Spark wants to be told what the table is made of, unless that is its default.
    if (format.isEmpty) appended.flatMap(_.provider).foreach(writer.format)
    if (sortBy.nonEmpty) writer.sortBy(sortBy.head, sortBy.tail: _*)
    if (partitionBy.nonEmpty) writer.partitionBy(partitionBy: _*)
    writer.saveAsTable(table)
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
    val column = df.col(BucketedWriter.quoted(name))
    columnOf(name, appended) match {
      case Some(f) =>
        val wanted = CharVarcharUtils.getRawType(f.metadata).getOrElse(f.dataType)
        wanted match {
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

  private def files(): Seq[FileStatusWithMetadata] =
    relation.location.listFiles(Nil, Nil).flatMap(_.files)

  private def relation: HadoopFsRelation = session
    .table(identifier.quotedString)
    .queryExecution
    .analyzed
    .collect { case scan: LogicalRelation => scan.relation }
    .collectFirst { case files: HadoopFsRelation => files }
    .getOrElse(throw SqlInternals.analysisError(
      s"The table ${identifier.unquotedString} is not made of files that Spark writes by bucket."))

  /**
   * Which of the files are of this write, and the rows of all of a name. Others may have written to
   * the table meanwhile. A file's name has the number of its task, and an id of the write, which
   * Spark tells nobody. So of several writes ours is the one whose tasks have written as many rows.
   */
  private def writtenBy(
      rowsByTask: Map[Int, Long],
      added: Seq[FileStatusWithMetadata]): (Seq[FileStatusWithMetadata], Map[String, Long]) = {
    val rows = rowsByFile(added)
    val own = added.groupBy(file => BucketedWriter.writeOf(file.getPath.getName)).filter {
      case (Some(_), files) =>
        files
          .map(_.getPath.getName)
          .distinct
          .groupBy(BucketedWriter.taskOf)
          .map { case (task, names) => task -> names.map(rows.getOrElse(_, 0L)).sum }
          .filter(_._2 > 0) == rowsByTask.map { case (task, n) => (Option(task), n) }
      case _ => false
    }
    if (own.isEmpty && rowsByTask.nonEmpty) {
      throw new IllegalStateException("No write has as many rows in its files.")
    }
    (own.values.headOption.getOrElse(Nil), rows)
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
        .count()
        .collect()
        .map(row => (row.getString(0).split('/').last, row.getLong(1)))
        .groupBy { case (name, _) => name }
        .map { case (name, counts) => name -> counts.map(_._2).sum }
    }
}

private object BucketedWriter {
  private val SessionCatalog = "spark_catalog"

  /** Files are named part-<task>-<id of the write>_<bucket>..., whatever commits them. */
  private val FileName = "part-(\\d+)-(.*)_\\d+(?:\\..*)?".r

  private def taskOf(name: String): Option[Int] =
    Option(name).collect { case FileName(task, _) => task.toInt }

  private def writeOf(name: String): Option[String] =
    Option(name).collect { case FileName(_, write) => write }

  private def quoted(name: String): String = s"`${name.replace("`", "``")}`"
}
