package io.github.skewext.bucket.files

import org.apache.spark.sql.catalyst.expressions.{Ascending, SortOrder}
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.skewext.SparkShims

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
}
