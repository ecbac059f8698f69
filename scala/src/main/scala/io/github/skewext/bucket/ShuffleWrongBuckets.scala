package io.github.skewext.bucket

import io.github.skewext.bucket.files.{BucketFiles, FileBuckets}
import io.github.skewext.join.MultiFullJoin
import io.github.skewext.platform.HasOperator

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

/**
 * Lets operators of skewext shuffle tables whose files have other buckets than the table declares.
 * Spark's chain of joins shuffles the rows of its first join for the second one, so it finds more
 * matches than one operator without a shuffle would.
 *
 * It runs after Spark has pruned partitions, so only files that the query reads are checked.
 */
object ShuffleWrongBuckets extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (conf.bucketingEnabled) changed(plan) else plan

  private def changed(plan: LogicalPlan): LogicalPlan = plan match {
    case _: MultiFullJoin | _: HasOperator => plan.mapChildren(withoutWrongBuckets)
    case _ => plan.mapChildren(changed)
  }

  private def withoutWrongBuckets(input: LogicalPlan): LogicalPlan = input.transformDown {
    case table: LogicalRelation =>
      table.relation match {
        case files: HadoopFsRelation if files.bucketSpec.exists(_.numBuckets > 1) =>
          BucketFiles.check(files) match {
            case _: FileBuckets.Wrong =>
              table.copy(relation = files.copy(bucketSpec = None)(files.sparkSession))
            case _ => table
          }
        case _ => table
      }
  }
}
