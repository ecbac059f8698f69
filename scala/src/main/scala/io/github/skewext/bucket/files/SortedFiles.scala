package io.github.skewext.bucket.files

import org.apache.spark.sql.catalyst.expressions.{Ascending, SortOrder}
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.skewext.SparkShims
import org.apache.spark.sql.types.StructType

/**
 * The number and memory of the files that a task opens to read a bucket in order.
 *
 * @param most the maximum number of files of a task
 * @param bytes an estimate of the maximum memory that the readers of a task's files use at a time
 */
private[skewext] case class SortedFiles(most: Int, bytes: Long)

/**
 * The order of the files of a bucketed table. Each file was written by one task, which sorted its
 * rows by the table's sort columns. A scan reports this order only if no bucket has a second file,
 * and by default not even then.
 *
 * A bucketed scan always reads a table that Spark wrote: tables of Hive are read without buckets.
 */
private[skewext] object SortedFiles {

  /**
   * The order of each file of the scan: the leading sort columns that the scan reads. It ends at a
   * string whose collation ALTER TABLE can change or remove, because that leaves the files. Bucket
   * columns have no collation. It also ends at a column whose values the files may change, because
   * rows that are equal now were not sorted by the next column.
   */
  def order(scan: FileSourceScanExec): Seq[SortOrder] = if (scan.bucketedScan) {
    scan.relation.bucketSpec.toSeq.flatMap { buckets =>
      val columns = buckets.sortColumnNames
        .map(name => scan.output.find(_.name == name))
        .takeWhile(_.exists { column =>
          (buckets.bucketColumnNames.contains(column.name) ||
            !SparkShims.canChangeCollation(column.dataType)) &&
          StoredValues.keepOrder(scan, column.dataType)
        })
        .flatten
      val (exact, changed) = columns.span(column => StoredValues.ofType(column.dataType))
      (exact ++ changed.take(1)).map(SortOrder(_, Ascending))
    }
  } else {
    Nil
  }

  /**
   * Estimates the files and the memory of the readers that a task opens at the same time. If they
   * are too many or too large, Spark sorts the rows instead.
   *
   * @param lengths the lengths in bytes of the files of each task
   * @param share the fraction of a file's bytes in the columns that are read
   */
  def estimate(lengths: Iterable[Seq[Long]], share: Double): SortedFiles = SortedFiles(
    lengths.map(_.size).foldLeft(0)(math.max),
    // A reader holds the columns of one row group or stripe at a time.
    lengths
      .map(_.map(math.min(_, RowGroup)).sum)
      .map(b => (b * share).toLong)
      .foldLeft(0L)(math.max))

  private val RowGroup = 128L << 20

  def share(read: StructType, all: StructType): Double =
    math.min(1.0, read.defaultSize.toDouble / math.max(1, all.defaultSize))
}
