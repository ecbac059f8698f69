package io.github.skewext.bucket

import io.github.skewext.bucket.files.{BucketFiles, BucketedScan, StoredValues}
import io.github.skewext.platform.RuleGroup

import org.apache.spark.sql.catalyst.catalog.BucketSpec
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}
import org.apache.spark.util.collection.BitSet

/**
 * Prunes the buckets of scans of bucketed tables by filters. Spark does so for tables with one
 * bucket column; this rule adds to the buckets that Spark has already pruned.
 *
 * The files must prove the buckets that the table declares (`FileBuckets`), as Spark's rows do not
 * depend on them here.
 *
 * The scan selects files by the bucket in their names. So buckets are also pruned if Spark does not
 * read the table by bucket, such as in a query with filters only.
 */
object PruneBuckets extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan =
    if (conf.bucketingEnabled) {
      plan.transform { case scan @ BucketedScan(spec) if spec.numBuckets > 1 => prune(scan, spec) }
    } else {
      plan
    }

  private def prune(scan: FileSourceScanExec, spec: BucketSpec): FileSourceScanExec = {
    val found = BucketedScan.hashedColumns(scan, spec) match {
      case Some(columns) =>
        // The filters need not be exact here: a node above the scan checks them again, or they
        // select files.
        new PossibleBuckets(columns, spec.numBuckets).of(scan.dataFilters)
      case None if !StoredValues.ofFormat(scan) => Left(BucketReason.Format.given)
      case None =>
        // The scan reads every column that a filter uses.
        val open = spec.bucketColumnNames.filter(BucketedScan.column(scan, _).isEmpty)
        if (open.size == spec.bucketColumnNames.size) {
          Left(BucketReason.NoCondition.given)
        } else {
          Left(BucketReason.NotFixed(open.mkString(", ")))
        }
    }
    found.flatMap(restricted(scan, spec, _)) match {
      case Right(pruned) =>
        BucketReason.clear(scan)
        pruned
      case Left(reason) =>
        BucketReason.set(scan, reason)
        scan
    }
  }

  /** The scan without other buckets, or the reason why its files do not prove that it may be. */
  private def restricted(
      scan: FileSourceScanExec,
      spec: BucketSpec,
      buckets: BitSet): Either[BucketReason.Detailed, FileSourceScanExec] = {
    val pruned = BucketedScan.restrict(scan, spec, buckets)
    // Spark itself prunes by one bucket column.
    if (pruned eq scan) Right(scan)
    else BucketReason.ofFiles(BucketFiles.check(scan)).toLeft(pruned)
  }
}

/** Rules for physical plans that read bucketed tables. */
class BucketedScanRules(rules: Rule[SparkPlan]*) extends RuleGroup[SparkPlan](rules) {

  override protected def concerns(plan: SparkPlan): Boolean = plan.exists {
    case scan: FileSourceScanExec => BucketedScan.unapply(scan).isDefined
    case _ => false
  }
}
