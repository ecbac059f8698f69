package io.github.skewext.bucket.files

import org.apache.spark.util.collection.BitSet

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
