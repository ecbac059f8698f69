package io.github.skewext.execution.files

import scala.collection.mutable

import org.apache.hadoop.fs.Path

import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.execution.datasources.BucketingUtils
import org.apache.spark.sql.internal.SQLConf

/**
 * The files of each partition of a scan by the bucket. Sizes are those of files, by the share that
 * the columns have of them that are read.
 */
private[skewext] class BucketFiles(
    scan: FileSourceScanExec,
    files: IndexedSeq[Seq[BucketFiles.File]]) {

  private val share = SortedFiles.share(scan.requiredSchema, scan.relation.dataSchema)

  private val asked = mutable.Map.empty[Int, Seq[FileRange]]

  val bytes: IndexedSeq[Long] = files.map(_.map(file => read(file.length)).sum)

  /**
   * The files of a partition, and the larger ones by their row groups, in the order in which they are
   * read.
   */
  def ranges(partition: Int): Seq[FileRange] =
    asked.getOrElseUpdate(partition, divide(files(partition)))

  /** Of the partitions that were asked for, as are those that are split. */
  def known: Map[Int, Seq[FileRange]] = asked.toMap

  private def divide(files: Seq[BucketFiles.File]): Seq[FileRange] = {
    val slice = SQLConf.get.getConf(SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES)
    val large = if (RowGroups.mayDivide(scan)) files.filter(f => read(f.length) > slice) else Nil
    // With so many files, these will do as slices.
    val divided = large.take(BucketFiles.MostFooters).toSet
    files.flatMap { file =>
      rangesOf(file, if (divided.contains(file)) RowGroups.of(scan, file.path) else Nil)
    }
  }

  private def rangesOf(file: BucketFiles.File, groups: Seq[RowGroups.Group]): Seq[FileRange] =
    if (groups.size < 2) {
      Seq(FileRange(file.name, 0, file.length, file.length, read(file.length)))
    } else {
      // What is between row groups, before the first and after the last, has no rows.
      val starts = 0L +: groups.tail.map(_.start) :+ file.length
      val all = groups.map(_.bytes).sum.toDouble
      groups.indices.map { i =>
        FileRange(
          file.name,
          starts(i),
          starts(i + 1) - starts(i),
          file.length,
          (read(file.length) * (groups(i).bytes / all)).toLong)
      }
    }

  private def read(bytes: Long): Long = (bytes * share).toLong
}

private[skewext] object BucketFiles {

  case class File(path: Path, name: String, length: Long)

  private val MostFooters = 64

  def of(scan: FileSourceScanExec): Option[BucketFiles] = {
    val numBuckets = scan.relation.bucketSpec.get.numBuckets
    val files = SortedFiles.listed(scan).map { file =>
      val path = file.getPath
      File(path, SparkPath.fromPath(path).urlEncoded, file.getLen)
    }
    val buckets = files.map(file => BucketingUtils.getBucketId(file.path.getName))
    if (buckets.forall(_.isDefined)) {
      val byPartition = files
        .zip(buckets.flatten)
        .filter { case (_, bucket) => scan.optionalBucketSet.forall(_.get(bucket)) }
        .groupBy { case (_, bucket) => scan.optionalNumCoalescedBuckets.fold(bucket)(bucket % _) }
      val partitions = (0 until scan.optionalNumCoalescedBuckets.getOrElse(numBuckets)).map { p =>
        byPartition.getOrElse(p, Nil).map(_._1).distinct
      }
      Some(new BucketFiles(scan, partitions))
    } else {
      None
    }
  }
}
