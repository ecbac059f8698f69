package io.github.skewext.merge

import io.github.skewext.facts.{BuiltinShuffledJoin, StableRows}

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.util.MetadataColumnHelper
import org.apache.spark.sql.execution.adaptive.QueryStageExec
import org.apache.spark.sql.execution.datasources.v2.MergeRowsExec
import org.apache.spark.sql.execution.{FilterExec, ProjectExec, SparkPlan}

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
    // Each query is searched, and the expressions of all nodes would take longer.
    case ProjectExec(list, child) => list.exists(isCounted(_)) || isPartOfOne(child)
    case FilterExec(condition, child) => isCounted(condition) || isPartOfOne(child)
    case node => node.children.exists(isPartOfOne)
  }

  private def isCounted(e: Expression): Boolean = e.exists(StableRows.isCounterOfDelta)
}
