package io.github.skewext.bucket

import io.github.skewext.bucket.files.BucketedScan
import io.github.skewext.platform.RuleGroup

import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}

/** Rules for physical plans that read bucketed tables. */
class BucketedScanRules(rules: Rule[SparkPlan]*) extends RuleGroup[SparkPlan](rules) {

  override protected def concerns(plan: SparkPlan): Boolean = plan.exists {
    case scan: FileSourceScanExec => BucketedScan.unapply(scan).isDefined
    case _ => false
  }
}
