package io.github.skewext.bucket

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
 * Writes a bucketed table with one file a bucket, and per value of the partition columns: the rows
 * of a bucket are brought to one task first, by the hash that decides about the bucket as well.
 * Everything else is `DataFrameWriter.saveAsTable`.
 *
 * @param table as in `saveAsTable`: a table of the session catalog
 * @param format if defined, the provider; else the session's default, or that of the table
 * @param sortBy the columns that each file is sorted by
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
    options: Map[String, String]) {

  private val session: SparkSession = df.sparkSession

  def write(): WrittenBuckets = SqlInternals.withActive(session) {
    val before = existing
    val saveMode = mode match {
      // Where there is nothing to append to, a table is made.
      case "append" => SaveMode.Append
      case "overwrite" => SaveMode.Overwrite
      case "ignore" => SaveMode.Ignore
      case "error" | "errorifexists" | "default" => SaveMode.ErrorIfExists
      case other => throw SqlInternals.analysisError(s"There is no mode '$other' of writing.")
    }
    if (saveMode == SaveMode.Ignore && before.isDefined) {
      WrittenBuckets.nothing(identifier.unquotedString, buckets)
    } else {
      val appended = before.filter(_ => saveMode == SaveMode.Append)
      val filesBefore = appended.map(_ => files().map(_.getPath).toSet).getOrElse(Set.empty)
      save(saveMode, appended)
      val written = files().filterNot(file => filesBefore.contains(file.getPath))
      WrittenBuckets.of(
        identifier.unquotedString,
        buckets,
        written.map(file => file.getPath.getName -> file.getLen),
        rowsByFile(written),
        session.sessionState.conf.getConf(SQLConf.SKEW_JOIN_SKEWED_PARTITION_FACTOR))
    }
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
    session.sessionState.catalog
      .qualifyIdentifier(TableIdentifier(parts.last, parts.dropRight(1).lastOption))
  }

  private def existing: Option[CatalogTable] = {
    val catalog = session.sessionState.catalog
    if (catalog.tableExists(identifier)) Some(catalog.getTableMetadata(identifier)) else None
  }

  private def save(saveMode: SaveMode, appended: Option[CatalogTable]): Unit = {
    val writer = together(appended).write
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

  /** The rows of each file in one task. */
  private def together(appended: Option[CatalogTable]): DataFrame = {
    val bucketValues = by.map(stored(_, appended))
    if (partitionBy.isEmpty) {
      // Task i has bucket i. A null adds nothing to the hash; it keeps Spark from leaving out the
      // shuffle where the rows come from a join by the same columns: of that, adaptive execution
      // may split partitions.
      df.repartition(buckets, bucketValues :+ lit(null).cast(IntegerType): _*)
    } else {
      // More tasks than buckets, and each opens the files of some partitions only.
      val partitionValues = partitionBy.map(stored(_, appended)).zip(partitionBy).map {
        // Spark writes an empty string as null.
        case (value, name) if typeOf(name) == StringType => when(value =!= "", value)
        case (value, _) => value
      }
      df.repartition(partitionValues :+ pmod(hash(bucketValues: _*), lit(buckets)): _*)
    }
  }

  /** A column as the table keeps it: of that, Spark computes the bucket. */
  private def stored(name: String, appended: Option[CatalogTable]): Column = {
    val column = df.col(BucketedWriter.quoted(name))
    val field = appended.flatMap(_.schema.find(f => resolver(f.name, name)))
    field match {
      case Some(f) =>
        val wanted = CharVarcharUtils.getRawType(f.metadata).getOrElse(f.dataType)
        wanted match {
          case CharType(n) => rpad(column.cast(StringType), n, " ")
          case VarcharType(n) => column.cast(StringType).substr(1, n)
          case other if other == typeOf(name) => column
          case other => column.cast(other)
        }
      case None => column
    }
  }

  private def typeOf(name: String): DataType =
    df.schema.find(f => resolver(f.name, name)).map(_.dataType).getOrElse(NullType)

  private def resolver: (String, String) => Boolean = session.sessionState.conf.resolver

  private def files(): Seq[FileStatusWithMetadata] =
    relation.location.listFiles(Nil, Nil).flatMap(_.files)

  private def relation: HadoopFsRelation = session
    .table(identifier.quotedString)
    .queryExecution
    .analyzed
    .collectFirst { case LogicalRelation(files: HadoopFsRelation, _, _, _) => files }
    .getOrElse(throw SqlInternals.analysisError(
      s"The table ${identifier.unquotedString} is not made of files that Spark writes by bucket."))

  /** From what the files say of themselves, where they do: no column is read. */
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

  private def quoted(name: String): String = s"`${name.replace("`", "``")}`"
}
