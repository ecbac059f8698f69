package io.github.skewext.bucket.files

import io.github.skewext.platform.LogicalLinks

import org.apache.spark.sql.catalyst.catalog.BucketSpec
import org.apache.spark.sql.catalyst.expressions.{Attribute, FileSourceConstantMetadataAttribute, FileSourceGeneratedMetadataAttribute}
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.util.collection.BitSet

/** A scan of a table that Spark wrote in buckets. */
private[skewext] object BucketedScan {

  def unapply(scan: FileSourceScanExec): Option[BucketSpec] = scan.relation.bucketSpec

  /**
   * The column with a name, if the scan reads it. A metadata column of the files may have the same
   * name.
   */
  def column(scan: FileSourceScanExec, name: String): Option[Attribute] = scan.output.find {
    case FileSourceConstantMetadataAttribute(_) | FileSourceGeneratedMetadataAttribute(_, _) =>
      false
    case a => a.name == name
  }

  /**
   * The bucket columns, if the scan reads all of them from files whose format keeps values. The
   * hash of their values is then the bucket, as far as [[StoredValues]] does not exclude them.
   */
  def hashedColumns(scan: FileSourceScanExec, spec: BucketSpec): Option[Seq[Attribute]] = {
    val found = spec.bucketColumnNames.flatMap(column(scan, _))
    if (found.size == spec.bucketColumnNames.size && StoredValues.ofFormat(scan)) Some(found)
    else None
  }

  /** The scan, limited to these buckets. Returns the same object if it reads no others already. */
  def restrict(scan: FileSourceScanExec, spec: BucketSpec, to: BitSet): FileSourceScanExec = {
    val before = scan.optionalBucketSet
    val buckets = new BucketSet(spec.numBuckets, before)
    (0 until spec.numBuckets).foreach { b =>
      if (to.get(b) && before.forall(_.get(b))) buckets.set(b)
    }
    if (buckets.cardinality() == before.fold(spec.numBuckets)(_.cardinality())) {
      scan
    } else {
      LogicalLinks.replacing(scan)(scan.copy(optionalBucketSet = Some(buckets)))
    }
  }
}

/**
 * The buckets of a table that Spark's scan reads. A file name may contain a number that is no
 * bucket of the table. Such a file is left to the scan: it reads the file if it does not read by
 * bucket, or if it reads the table as if it had fewer buckets.
 *
 * @param before the buckets that the scan read before, if they were pruned already
 */
private[skewext] final class BucketSet(numBuckets: Int, before: Option[BitSet])
    extends BitSet(numBuckets) {

  override def get(bucket: Int): Boolean =
    if (bucket < numBuckets) super.get(bucket) else before.forall(_.get(bucket))
}
