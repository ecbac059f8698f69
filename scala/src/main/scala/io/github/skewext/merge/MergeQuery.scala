package io.github.skewext.merge

import io.github.skewext.facts.{BuiltinShuffledJoin, StableRows}

import org.apache.spark.sql.catalyst.util.MetadataColumnHelper
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.QueryStageExec
import org.apache.spark.sql.execution.datasources.v2.MergeRowsExec

/**
 * The queries that Spark and Delta run for a MERGE. From the target they shuffle the key, a file
 * name or a flag, and little else. So rows with one key are equal, and many of them compress to a
 * few bytes. Key sampling finds these keys, and its cost is negligible compared with a MERGE.
 */
private[skewext] object MergeQuery {

  /**
   * Whether the plan is such a query. The signs are Spark's operator for MERGE, a join that returns
   * file metadata columns, and the expression with which Delta counts source rows. A user's query
   * that joins rows and selects their files matches, too.
   */
  def isPartOfOne(plan: SparkPlan): Boolean = plan match {
    case _: MergeRowsExec => true
    case BuiltinShuffledJoin(join) if join.output.exists(_.isMetadataCol) => true
    case stage: QueryStageExec => isPartOfOne(stage.plan)
    case node =>
      node.expressions.exists(_.exists(StableRows.isCounterOfDelta)) ||
      node.children.exists(isPartOfOne)
  }
}
