package io.github.skewext.bucket.files

import java.io.Closeable

import scala.collection.mutable

import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.catalog.BucketSpec
import org.apache.spark.sql.catalyst.expressions.{BoundReference, Murmur3Hash}
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution.datasources.{FileFormat, HadoopFsRelation, PartitionedFile}
import org.apache.spark.sql.skewext.TaskInternals
import org.apache.spark.sql.types.{StructField, StructType}

/** Reads the bucket columns of the first rows of files, on the driver and without a job. */
private[files] final class FileHashes(
    relation: HadoopFsRelation,
    spec: BucketSpec,
    columns: Seq[StructField]) {

  private val inRow = columns.zipWithIndex.map { case (c, i) =>
    BoundReference(i, c.dataType, nullable = true)
  }
  private val hash = new Murmur3Hash(inRow)
  private val bucketOf = HashPartitioning(inRow, spec.numBuckets).partitionIdExpression

  private val read: PartitionedFile => Iterator[InternalRow] =
    relation.fileFormat.buildReaderWithPartitionValues(
      relation.sparkSession,
      relation.dataSchema,
      StructType(Nil),
      StructType(columns),
      Nil,
      relation.options + (FileFormat.OPTION_RETURNING_BATCH -> "false"),
      relation.sparkSession.sessionState.newHadoopConfWithOptions(relation.options))

  /** Reads until there are so many different hashes, or so many rows, or no more. */
  def of(file: FileBuckets.Listed, mostHashes: Int, mostRows: Int): FileHashes.Read = {
    val bucket = file.bucket.get
    val whole = PartitionedFile(
      InternalRow.empty,
      SparkPath.fromPath(file.path),
      0,
      file.length,
      modificationTime = file.modified,
      fileSize = file.length)
    TaskInternals.asTask {
      val rows = read(whole)
      try {
        val hashes = mutable.Set.empty[Int]
        var numRows = 0
        var fits = true
        while (fits && hashes.size < mostHashes && numRows < mostRows && rows.hasNext) {
          val row = rows.next()
          numRows += 1
          val isExact = inRow.forall(c => StoredValues.isExact(c.eval(row), c.dataType))
          if (isExact && hashes.add(hash.eval(row).asInstanceOf[Int])) {
            fits = bucketOf.eval(row) == bucket
          }
        }
        FileHashes.Read(hashes.toSet, fits, !rows.hasNext)
      } finally {
        rows match {
          case open: Closeable => open.close()
          case _ =>
        }
      }
    }
  }
}

private[files] object FileHashes {

  /**
   * @param fits whether the rows that were read are in the bucket of the file
   * @param isWhole whether all rows were read
   */
  case class Read(hashes: Set[Int], fits: Boolean, isWhole: Boolean)
}
