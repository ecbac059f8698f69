package io.github.skewext.bucket

import io.github.skewext.execution.files.BucketedScan
import io.github.skewext.internal.SkewConf
import io.github.skewext.plan.BucketReason

import org.apache.spark.sql.catalyst.catalog.BucketSpec
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}

/**
 * Makes scans of bucketed tables read only the buckets that rows of the query can be in. Spark does
 * so for tables with one bucket column. What is said of buckets is added to what Spark has found.
 *
 * A scan leaves other buckets out by the names of their files, also where Spark does not read by the
 * bucket, as in a query that only filters.
 */
object PruneBuckets extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan =
    if (SkewConf.enabled(conf) && conf.bucketingEnabled) {
      plan.transform { case scan @ BucketedScan(spec) if spec.numBuckets > 1 => prune(scan, spec) }
    } else {
      plan
    }

  private def prune(scan: FileSourceScanExec, spec: BucketSpec): FileSourceScanExec = {
    val found = if (!conf.getConf(SkewConf.BUCKET_PRUNING)) {
      Left(BucketReason.Detailed(BucketReason.SwitchedOff))
    } else {
      BucketedScan.columns(scan, spec) match {
        case Some(columns) =>
          val maxValues = conf.getConf(SkewConf.BUCKET_PRUNING_MAX_VALUES)
          // All of them are checked once more above the scan, or are what files are chosen by.
          new PossibleBuckets(columns, spec.numBuckets, maxValues).of(scan.dataFilters)
        case None =>
          // What conditions are on is read.
          val open = spec.bucketColumnNames.filter(BucketedScan.column(scan, _).isEmpty)
          if (open.size == spec.bucketColumnNames.size) {
            Left(BucketReason.Detailed(BucketReason.NoCondition))
          } else {
            Left(BucketReason.Detailed(BucketReason.NotFixed, Some(open.mkString(", "))))
          }
      }
    }
    found match {
      case Right(buckets) =>
        BucketReason.clear(scan)
        BucketedScan.restrict(scan, spec, buckets)
      case Left(reason) =>
        BucketReason.set(scan, reason)
        scan
    }
  }
}
