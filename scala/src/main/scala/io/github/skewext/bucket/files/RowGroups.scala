package io.github.skewext.bucket.files

import scala.collection.JavaConverters._
import scala.util.Try

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.orc.OrcFile
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.util.HadoopInputFile

import org.apache.spark.sql.catalyst.FileSourceOptions
import org.apache.spark.sql.catalyst.expressions.FileSourceConstantMetadataAttribute
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.execution.datasources.FileFormat
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.skewext.SqlInternals

/**
 * The starts of the row groups of a Parquet file, or of the stripes of an ORC file, from its
 * footer. For a range of a file, Spark reads the stripes that start in it, and the row groups whose
 * middle is in it.
 */
private[skewext] object RowGroups {

  case class Group(start: Long, bytes: Long)

  /** The number of threads with which Spark reads footers. */
  private val Threads = 8

  /**
   * The row groups of each file; none if it cannot be read in ranges. Several footers are read at a
   * time.
   */
  def of(scan: FileSourceScanExec, paths: Seq[Path]): Map[Path, Seq[Group]] = {
    val relation = scan.relation
    val session = relation.sparkSession
    val format = relation.fileFormat
    val reader: Option[(Configuration, Path) => Seq[Group]] = format match {
      case _: ParquetFileFormat => Some(parquet)
      case _: OrcFileFormat => Some(orc)
      case _ => None
    }
    reader.filter(_ => paths.nonEmpty && mayDivide(scan)).fold(Map.empty[Path, Seq[Group]]) {
      read =>
        val conf = session.sessionState.newHadoopConfWithOptions(relation.options)
        val groups = SqlInternals.inThreads(paths, "skewext-footers", Threads) { path =>
          // If a file cannot be read, the task that reads it reports the error.
          Try(if (format.isSplitable(session, relation.options, path)) read(conf, path) else Nil)
            .getOrElse(Nil)
            .sortBy(_.start)
        }
        paths.zip(groups).toMap
    }
  }

  /**
   * False if rows contain the range from which they were read, or if corrupt parts are ignored.
   * Spark does not read a file after a corrupt part, but would read the ranges after it.
   */
  private def mayDivide(scan: FileSourceScanExec): Boolean = {
    val options = new FileSourceOptions(CaseInsensitiveMap(scan.relation.options))
    !options.ignoreCorruptFiles && !scan.output.exists {
      case FileSourceConstantMetadataAttribute(a) => TellRange.contains(a.name)
      case _ => false
    }
  }

  private val TellRange = Set(FileFormat.FILE_BLOCK_START, FileFormat.FILE_BLOCK_LENGTH)

  private def parquet(conf: Configuration, path: Path): Seq[Group] = {
    val reader = ParquetFileReader.open(HadoopInputFile.fromPath(path, conf))
    try {
      reader.getFooter.getBlocks.asScala.toSeq.map { group =>
        Group(group.getStartingPos, math.max(1L, group.getCompressedSize))
      }
    } finally {
      reader.close()
    }
  }

  private def orc(conf: Configuration, path: Path): Seq[Group] = {
    val reader = OrcFile.createReader(path, OrcFile.readerOptions(conf))
    try {
      reader.getStripes.asScala.toSeq.map(stripe => Group(stripe.getOffset, stripe.getLength))
    } finally {
      reader.close()
    }
  }
}
