package io.github.skewext.execution.files

import org.apache.spark.util.collection.BitSet

/**
 * Buckets of a table, for Spark's scan to read no others. A file may have a number in its name that
 * no bucket of the table has: what becomes of it must be what becomes of it where all buckets are
 * read. Spark's own set would fail.
 *
 * @param keepsOthers whether such files are left to the scan, which reads them where it has no regard
 *                    to buckets; else they are not read
 */
private[skewext] final class BucketSet(numBuckets: Int, keepsOthers: Boolean)
    extends BitSet(numBuckets) {

  override def get(bucket: Int): Boolean =
    if (bucket < numBuckets) super.get(bucket) else keepsOthers
}
