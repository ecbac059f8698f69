package io.github.skewext.skew

import io.github.skewext.execution.SparksShuffledJoin
import io.github.skewext.plan.StableRows

import org.apache.spark.sql.catalyst.util.MetadataColumnHelper
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.QueryStageExec
import org.apache.spark.sql.execution.datasources.v2.MergeRowsExec

/**
 * The queries by which Spark and Delta carry out a MERGE. Of the target they shuffle a key, a file's name
 * or a flag, and little else: rows of one key are equal there, and many of them a few bytes. So their
 * keys are counted, which is nothing beside what a MERGE takes.
 */
private[skew] object MergeQuery {

  /**
   * Whether the plan is one of them, told by what a MERGE has: Spark's operator, the files of the rows
   * of a join, or Delta's counting of the source's rows. A query of a user that joins rows and asks for
   * their files is taken for one as well.
   */
  def isPartOfOne(plan: SparkPlan): Boolean = plan match {
    case _: MergeRowsExec => true
    case SparksShuffledJoin(join) if join.output.exists(_.isMetadataCol) => true
    case stage: QueryStageExec => isPartOfOne(stage.plan)
    case node =>
      node.expressions.exists(_.exists(StableRows.isCounterOfDelta)) ||
      node.children.exists(isPartOfOne)
  }
}
