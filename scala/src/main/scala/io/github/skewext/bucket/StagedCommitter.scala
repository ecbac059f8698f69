package io.github.skewext.bucket

import java.util.UUID

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.hadoop.mapreduce.lib.output.{FileOutputCommitter, FileOutputCommitterFactory, PathOutputCommitterFactory}
import org.apache.hadoop.mapreduce.{JobContext, JobStatus, TaskAttemptContext}
import org.apache.parquet.hadoop.{ParquetOutputCommitter, ParquetOutputFormat}

import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetDataSourceV2
import org.apache.spark.sql.execution.datasources.{DataSource, SQLHadoopMapReduceCommitProtocol}
import org.apache.spark.sql.internal.SQLConf

/**
 * Hadoop's file committer with a staging folder of its own for each write. Hadoop's is one folder for
 * all writes to a table, `_temporary`: the first write to finish publishes what tasks of the others have
 * committed, and deletes what they have not. Their tasks do not notice.
 */
final class StagedCommitter(output: Path, context: TaskAttemptContext)
    extends FileOutputCommitter(output, context)
    with Logging {

  import FileOutputCommitter.PENDING_DIR_NAME

  private val staging =
    new Path(getOutputPath, context.getConfiguration.get(StagedCommitter.Folder))

  private val workPath = getTaskAttemptPath(context)

  override def getJobAttemptPath(context: JobContext): Path = staging

  override protected def getJobAttemptPath(appAttemptId: Int): Path = staging

  override def getTaskAttemptPath(context: TaskAttemptContext): Path =
    new Path(new Path(staging, PENDING_DIR_NAME), context.getTaskAttemptID.toString)

  override def getWorkPath: Path = workPath

  override def commitJob(context: JobContext): Unit = {
    val fs = fileSystem(context)
    for (task <- fs.listStatus(staging) if task.getPath.getName != PENDING_DIR_NAME) {
      makeFolders(fs, task.getPath, getOutputPath)
    }
    super.commitJob(context)
    deleteStaging(context)
  }

  /**
   * Makes the folders of partitions. Hadoop would rename a folder that the table does not have yet; if
   * another write makes it in between, that moves the folder into the other one, where no query looks.
   */
  private def makeFolders(fs: FileSystem, from: Path, to: Path): Unit =
    for (folder <- fs.listStatus(from) if folder.isDirectory) {
      val made = new Path(to, folder.getPath.getName)
      fs.mkdirs(made)
      makeFolders(fs, folder.getPath, made)
    }

  override def abortJob(context: JobContext, state: JobStatus.State): Unit = deleteStaging(context)

  /** All files have left it, or none is wanted: what remains is hidden from queries. */
  private def deleteStaging(context: JobContext): Unit =
    try fileSystem(context).delete(staging, true)
    catch { case NonFatal(e) => logWarning(s"Could not delete $staging.", e) }

  private def fileSystem(context: JobContext): FileSystem =
    staging.getFileSystem(context.getConfiguration)
}

private[bucket] object StagedCommitter {

  private val Folder = "skewext.staging.folder"

  /** What lets Parquet's committer write summaries of all files, and an older name of it. */
  private val SummaryFiles =
    Seq(ParquetOutputFormat.JOB_SUMMARY_LEVEL, "parquet.enable.summary-metadata")

  private val OfParquet = classOf[ParquetOutputCommitter].getName

  /**
   * The options by which one write to the table uses it. None if another committer is configured, which
   * knows what its storage needs, or the committer does more than to move files.
   */
  def options(session: SparkSession, table: CatalogTable): Option[Map[String, String]] = {
    val conf = session.sessionState.newHadoopConfWithOptions(table.storage.properties)
    if (isSparksDefault(session, conf, table)) {
      val ours = classOf[StagedCommitter].getName
      Some(
        Map(
          Folder -> s".skewext-staging-${UUID.randomUUID()}",
          SQLConf.OUTPUT_COMMITTER_CLASS.key -> ours,
          SQLConf.PARQUET_OUTPUT_COMMITTER_CLASS.key -> ours,
          // Hadoop would delete the folder of the others.
          FileOutputCommitter.FILEOUTPUTCOMMITTER_CLEANUP_SKIPPED -> "true"))
    } else {
      None
    }
  }

  private def isSparksDefault(
      session: SparkSession,
      conf: Configuration,
      table: CatalogTable): Boolean = {
    val sessionConf = session.sessionState.conf
    val format = DataSource.lookupDataSource(table.provider.get, sessionConf)
    format.getName.startsWith("org.apache.spark.sql.") &&
    sessionConf.fileCommitProtocolClass == classOf[SQLHadoopMapReduceCommitProtocol].getName &&
    conf.get(SQLConf.OUTPUT_COMMITTER_CLASS.key) == null &&
    conf.get(SQLConf.PARQUET_OUTPUT_COMMITTER_CLASS.key, OfParquet) == OfParquet &&
    SummaryFiles.forall(conf.get(_, "none").equalsIgnoreCase("none")) &&
    (isParquet(format) || isFileOutputCommitter(conf, new Path(table.location))) &&
    // Not where our jar has come too late for Hadoop's class loader.
    conf.getClassByNameOrNull(classOf[StagedCommitter].getName) == classOf[StagedCommitter]
  }

  private def isParquet(format: Class[_]): Boolean =
    Seq(classOf[ParquetFileFormat], classOf[ParquetDataSourceV2]).exists(_.isAssignableFrom(format))

  /** For Parquet, Spark creates the committer itself, and does not ask for the factory. */
  private def isFileOutputCommitter(conf: Configuration, path: Path): Boolean =
    PathOutputCommitterFactory
      .getCommitterFactory(path, conf)
      .isInstanceOf[FileOutputCommitterFactory]
}
