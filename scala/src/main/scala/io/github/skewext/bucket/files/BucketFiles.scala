package io.github.skewext.bucket.files

import scala.collection.mutable

import org.apache.hadoop.fs.Path

import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.catalyst.expressions.{Expression, PlanExpression}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.execution.datasources.{BucketingUtils, HadoopFsRelation, PartitionDirectory}
import org.apache.spark.sql.internal.SQLConf

/**
 * The files of each partition of a scan by bucket. Sizes are those of files, multiplied by the
 * fraction that the columns to read have of them.
 */
private[skewext] class BucketFiles(
    scan: FileSourceScanExec,
    files: IndexedSeq[Seq[BucketFiles.File]]) {

  private val share = math.min(
    1.0,
    scan.requiredSchema.defaultSize.toDouble / math.max(1, scan.relation.dataSchema.defaultSize))

  private val asked = mutable.Map.empty[Int, Seq[FileRange]]

  val bytes: IndexedSeq[Long] = files.map(_.map(file => read(file.length)).sum)

  /** The number of files of the partition that has most of them. */
  def mostFiles: Int = files.map(_.size).foldLeft(0)(math.max)

  /**
   * The files of a partition in the order in which they are read. Large files are divided by their
   * row groups.
   */
  def ranges(partition: Int): Seq[FileRange] =
    asked.getOrElseUpdate(partition, divide(files(partition)))

  /**
   * The ranges of the partitions that were requested so far, which include all split partitions.
   */
  def known: Map[Int, Seq[FileRange]] = asked.toMap

  private def divide(files: Seq[BucketFiles.File]): Seq[FileRange] = {
    // A slice has rows of Spark's own partition, whatever their hashes. The check writes to the log.
    BucketFiles.check(scan)
    val slice = SQLConf.get.getConf(SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES)
    // With more large files, whole files are small enough as slices.
    val large = files.filter(f => read(f.length) > slice).take(BucketFiles.MostFooters)
    val groups = RowGroups.of(scan, large.map(_.path))
    files.flatMap(file => rangesOf(file, groups.getOrElse(file.path, Nil)))
  }

  private def rangesOf(file: BucketFiles.File, groups: Seq[RowGroups.Group]): Seq[FileRange] = {
    val name = SparkPath.fromPath(file.path).urlEncoded
    if (groups.size < 2) {
      Seq(FileRange(name, 0, file.length, file.length, read(file.length)))
    } else {
      // Bytes before, between and after the row groups contain no rows.
      val starts = 0L +: groups.tail.map(_.start) :+ file.length
      val all = groups.map(_.bytes).sum.toDouble
      groups.indices.map { i =>
        FileRange(
          name,
          starts(i),
          starts(i + 1) - starts(i),
          file.length,
          math.ceil(read(file.length) * (groups(i).bytes / all)).toLong)
      }
    }
  }

  /** Not 0, which would mean that there are no rows. */
  private def read(bytes: Long): Long = math.ceil(bytes * share).toLong
}

private[skewext] object BucketFiles {

  case class File(path: Path, length: Long)

  private val MostFooters = 64

  /**
   * The files of a scan, stored in a tag of the scan: several rules need them, once for each join
   * that they examine. A copy of the scan with fewer buckets has the tag, too. Not available in
   * tasks, which may receive the plan.
   */
  private[files] class Listing(
      @transient val relation: HadoopFsRelation,
      @transient val directories: Seq[PartitionDirectory])
      extends Serializable {

    /** Whether the files have the buckets that the table declares. */
    @transient lazy val check: FileBuckets.Check = FileBuckets.check(relation, listed(directories))

    def size: Int = directories.map(_.files.size).sum

    /**
     * The files of each bucket. None if a file name contains no bucket. It is lazy, because a table
     * may have very many files, and parsing their names takes time.
     */
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

  private def listed(directories: Seq[PartitionDirectory]): Seq[FileBuckets.Listed] =
    directories.flatMap(_.files).map { file =>
      FileBuckets.Listed(file.getPath, file.getLen, file.getModificationTime)
    }

  /** Whether the files that a scan reads have the buckets that the table declares. */
  def check(scan: FileSourceScanExec): FileBuckets.Check = listingOf(scan).check

  /** The same for a table that is not planned yet. */
  def check(relation: HadoopFsRelation): FileBuckets.Check =
    FileBuckets.check(relation, listed(relation.location.listFiles(Nil, Nil)))

  private val listing = TreeNodeTag[Listing]("skewext.bucketFiles")

  private def listingOf(scan: FileSourceScanExec): Listing = {
    if (scan.getTagValue(listing).isEmpty) scan.setTagValue(listing, list(scan))
    scan.getTagValue(listing).get
  }

  /**
   * Whether a task surely reads more than `files` files: there are more than that per bucket on
   * average.
   */
  def areSurelyMore(scan: FileSourceScanExec, files: Int): Boolean =
    scan.optionalBucketSet.isEmpty &&
      listingOf(scan).size > files.toLong * scan.relation.bucketSpec.get.numBuckets

  /** None if a file name contains no bucket. The scan itself fails then. */
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
   * Lists the files like the scan, but does not count them in its metrics as read. If subqueries
   * prune more partitions later, the scan has fewer files.
   */
  private def list(scan: FileSourceScanExec): Listing = {
    def known(filters: Seq[Expression]) =
      filters.filterNot(_.exists(_.isInstanceOf[PlanExpression[_]]))
    new Listing(
      scan.relation,
      scan.relation.location.listFiles(known(scan.partitionFilters), known(scan.dataFilters)))
  }
}
