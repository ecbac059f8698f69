package io.github.skewext.execution.files

import scala.collection.mutable

import org.apache.hadoop.fs.Path

import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.catalyst.expressions.{Expression, PlanExpression}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.execution.datasources.{BucketingUtils, PartitionDirectory}
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

  /** What a task has to open that reads the files of its partition side by side. */
  def sorted: SortedFiles = SortedFiles.estimate(files.map(_.map(_.length)), share)

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
    // With so many files, these will do as slices.
    val large = files.filter(f => read(f.length) > slice).take(BucketFiles.MostFooters)
    val groups = RowGroups.of(scan, large.map(_.path))
    files.flatMap(file => rangesOf(file, groups.getOrElse(file.path, Nil)))
  }

  private def rangesOf(file: BucketFiles.File, groups: Seq[RowGroups.Group]): Seq[FileRange] = {
    val name = SparkPath.fromPath(file.path).urlEncoded
    if (groups.size < 2) {
      Seq(FileRange(name, 0, file.length, file.length, read(file.length)))
    } else {
      // What is between row groups, before the first and after the last, has no rows.
      val starts = 0L +: groups.tail.map(_.start) :+ file.length
      val all = groups.map(_.bytes).sum.toDouble
      groups.indices.map { i =>
        FileRange(
          name,
          starts(i),
          starts(i + 1) - starts(i),
          file.length,
          (read(file.length) * (groups(i).bytes / all)).toLong)
      }
    }
  }

  private def read(bytes: Long): Long = (bytes * share).toLong
}

private[skewext] object BucketFiles {

  case class File(path: Path, length: Long)

  private val MostFooters = 64

  /**
   * The files of a scan, kept on the scan: several rules ask for them, and each as often as a join is
   * looked at. A copy with fewer buckets has them as well. Not for tasks, which may be given the plan.
   */
  private[files] class Listing(@transient val directories: Seq[PartitionDirectory])
      extends Serializable {

    def size: Int = directories.map(_.files.size).sum

    /** None if a name has no bucket in it. A table may have very many files, and a name takes its time. */
    @transient lazy val byBucket: Option[Map[Int, Seq[File]]] = {
      val byBucket = directories
        .flatMap(_.files)
        .groupBy(file => BucketingUtils.getBucketId(file.getPath.getName))
      if (byBucket.contains(None)) {
        None
      } else {
        Some(byBucket.collect { case (Some(bucket), own) =>
          bucket -> own.map(file => File(file.getPath, file.getLen)).distinct
        })
      }
    }
  }

  private val listing = TreeNodeTag[Listing]("skewext.bucketFiles")

  private def listingOf(scan: FileSourceScanExec): Listing = {
    if (scan.getTagValue(listing).isEmpty) scan.setTagValue(listing, list(scan))
    scan.getTagValue(listing).get
  }

  /** Whether a task reads more files than that, as far as their number tells. */
  def areSurelyMore(scan: FileSourceScanExec, files: Int): Boolean =
    scan.optionalBucketSet.isEmpty &&
      listingOf(scan).size > files.toLong * scan.relation.bucketSpec.get.numBuckets

  /** None if a name has no bucket in it, at which the scan is going to fail. */
  def of(scan: FileSourceScanExec): Option[BucketFiles] =
    listingOf(scan).byBucket.map { byBucket =>
      val numBuckets = scan.relation.bucketSpec.get.numBuckets
      val partitions = scan.optionalNumCoalescedBuckets.getOrElse(numBuckets)
      val read = (0 until numBuckets).filter(b => scan.optionalBucketSet.forall(_.get(b)))
      val byPartition = read.groupBy(_ % partitions)
      new BucketFiles(
        scan,
        (0 until partitions).map { p =>
          byPartition.getOrElse(p, Nil).flatMap(byBucket.getOrElse(_, Nil))
        })
    }

  /**
   * As the scan lists them, which would count them as read. Those that are left when subqueries have
   * pruned partitions are fewer.
   */
  private def list(scan: FileSourceScanExec): Listing = {
    def known(filters: Seq[Expression]) =
      filters.filterNot(_.exists(_.isInstanceOf[PlanExpression[_]]))
    new Listing(
      scan.relation.location.listFiles(known(scan.partitionFilters), known(scan.dataFilters)))
  }
}
