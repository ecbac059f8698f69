package io.github.skewext.explain

import io.github.skewext.bucket.BucketReason

import org.apache.spark.sql.execution.FileSourceScanExec

/** The buckets that a scan reads, and the reason. */
private[skewext] object ExplainedScans {

  /** @param off the reason why no rule applies to the session's scans, if there is one. */
  def of(
      scan: FileSourceScanExec,
      place: String,
      number: Int,
      off: Option[String]): ExplainedScan = {
    val spec = scan.relation.bucketSpec.get
    val read = scan.optionalBucketSet.fold(spec.numBuckets)(_.cardinality())
    val reason = BucketReason.of(scan)
    val (why, advice) = if (read < spec.numBuckets) {
      ("pruned by the filters", None)
    } else {
      reason match {
        case Some(given) if given.reason == BucketReason.NoCondition => (given.text, None)
        case Some(given) => (given.text, Some(given.reason.advice))
        case None if off.isDefined => (off.get, None)
        case None if !scan.bucketedScan => ("Spark does not read the table by bucket", None)
        case None => ("the filters allow values in all of them", None)
      }
    }
    ExplainedScan(
      number,
      place,
      ExplainedInputs.nameOf(scan),
      spec.bucketColumnNames,
      spec.numBuckets,
      read,
      if (scan.bucketedScan) Some(scan.outputPartitioning.numPartitions) else None,
      why,
      advice)
  }
}
