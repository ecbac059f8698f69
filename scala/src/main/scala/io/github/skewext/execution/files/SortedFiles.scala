package io.github.skewext.execution.files

import org.apache.spark.sql.catalyst.expressions.{Ascending, Expression, PlanExpression, SortOrder}
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.execution.datasources.{BucketingUtils, FileStatusWithMetadata}
import org.apache.spark.sql.types.StructType

/**
 * What a task that reads a bucket side by side has to open.
 *
 * @param most the most files that a task reads
 * @param bytes an estimate of the most that the readers of a task's files hold at a time
 */
private[skewext] case class SortedFiles(most: Int, bytes: Long)

/**
 * The files of a bucketed table, as far as their order goes. Each was written by one task that
 * sorted its rows by the table's sort columns. A scan only says so if no bucket has a second file,
 * and not even then by default.
 *
 * Bucketed scans are always of tables that Spark wrote: those of Hive are read without buckets.
 */
private[skewext] object SortedFiles {

  /** How each file of the scan is sorted: by as many of the sort columns as are read. */
  def order(scan: FileSourceScanExec): Seq[SortOrder] = if (scan.bucketedScan) {
    scan.relation.bucketSpec.toSeq
      .flatMap(_.sortColumnNames)
      .map(name => scan.output.find(_.name == name))
      .takeWhile(_.isDefined)
      .flatten
      .map(SortOrder(_, Ascending))
  } else {
    Nil
  }

  /** A value that is read from a file of text need not be in the place of the one that was written. */
  def keepsValues(scan: FileSourceScanExec): Boolean = scan.relation.fileFormat match {
    case _: ParquetFileFormat | _: OrcFileFormat => true
    case _ => false
  }

  /**
   * What a scan reads unless subqueries prune partitions. The scan is not asked itself: it counts its
   * files when it is asked first, which has to be when the query runs.
   */
  def listed(scan: FileSourceScanExec): Seq[FileStatusWithMetadata] = {
    def isStatic(filter: Expression) = !filter.exists(_.isInstanceOf[PlanExpression[_]])
    scan.relation.location
      .listFiles(scan.partitionFilters.filter(isStatic), scan.dataFilters.filter(isStatic))
      .flatMap(_.files)
  }

  /** The scan's files by the task that reads them; none if a name has no bucket in it. */
  def of(scan: FileSourceScanExec): Option[SortedFiles] = {
    val files = listed(scan)
    val buckets = files.map(file => BucketingUtils.getBucketId(file.getPath.getName))
    if (buckets.forall(_.isDefined)) {
      val read = buckets.flatten.zip(files.map(_.getLen)).filter { case (bucket, _) =>
        scan.optionalBucketSet.forall(_.get(bucket))
      }
      val byTask = read
        .groupBy { case (bucket, _) => scan.optionalNumCoalescedBuckets.fold(bucket)(bucket % _) }
        .values
        .map(_.map(_._2))
      Some(estimate(byTask, share(scan.requiredSchema, scan.relation.dataSchema)))
    } else {
      None
    }
  }

  /**
   * @param lengths of the files that each task reads
   * @param share how much of a file is in the columns that are read
   */
  def estimate(lengths: Iterable[Seq[Long]], share: Double): SortedFiles = SortedFiles(
    lengths.map(_.size).foldLeft(0)(math.max),
    // A reader holds what it needs of one row group, or stripe, at a time.
    lengths
      .map(_.map(math.min(_, RowGroup)).sum)
      .map(b => (b * share).toLong)
      .foldLeft(0L)(math.max))

  private val RowGroup = 128L << 20

  def share(read: StructType, all: StructType): Double =
    math.min(1.0, read.defaultSize.toDouble / math.max(1, all.defaultSize))
}
