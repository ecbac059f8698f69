package io.github.skewext.bucket.files

import org.apache.spark.util.collection.BitSet

/**
 * The buckets of a table that Spark's scan reads. A file name may contain a number that is no
 * bucket of the table. Such a file must be treated as in a scan of all buckets, whereas Spark's own
 * set would fail.
 *
 * @param keepsOthers whether such files are left to the scan, which reads them if it does not read
 *                    by bucket; if false, they are not read
 */
private[skewext] final class BucketSet(numBuckets: Int, keepsOthers: Boolean)
    extends BitSet(numBuckets) {

  override def get(bucket: Int): Boolean =
    if (bucket < numBuckets) super.get(bucket) else keepsOthers
}
