package io.github.skewext.merge

import io.github.skewext.facts.{BuiltinShuffledJoin, JoinHints, StableRows}
import io.github.skewext.join.WholeReason
import io.github.skewext.platform.LogicalLinks

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.MetadataColumnHelper
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, QueryStageExec}
import org.apache.spark.sql.execution.datasources.v2.MergeRowsExec
import org.apache.spark.sql.execution.joins.ShuffledJoin
import org.apache.spark.sql.execution.{FilterExec, PartialReducerPartitionSpec, ProjectExec, SparkPlan}

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

/**
 * Reverts splits by Spark's own rule for skewed joins that would change a result. Spark slices the
 * source of a MERGE and joins every slice with the whole target. Then no task finds two source rows
 * that match one target row: see [[JoinHints]]. This rule runs directly after Spark's rule, and
 * [[io.github.skewext.skew.split.SplitSkewedJoins]] may still slice the target.
 *
 * @param because what `explain` says of such a join
 */
case class UndoReplicatingSplits(because: WholeReason) extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan =
    if (!plan.exists(isSplit)) plan
    else {
      plan.transformUp {
        case BuiltinShuffledJoin(join) if join.isSkewJoin && replicates(join) => whole(join)
      }
    }

  private def isSplit(node: SparkPlan): Boolean = node match {
    case BuiltinShuffledJoin(join) => join.isSkewJoin
    case _ => false
  }

  private def replicates(join: ShuffledJoin): Boolean = {
    val (left, right) = JoinHints.mayReplicate(join)
    !left && isSliced(join.right) || !right && isSliced(join.left)
  }

  private def isSliced(side: SparkPlan): Boolean = side.exists {
    case read: AQEShuffleReadExec =>
      read.partitionSpecs.exists(_.isInstanceOf[PartialReducerPartitionSpec])
    case _ => false
  }

  /** Removes the reads that Spark adds directly above whole shuffles when it splits a join. */
  private def whole(join: ShuffledJoin): SparkPlan = {
    val unsplit = BuiltinShuffledJoin.withParts(join)(isSkewJoin = false)
    // Copy the tags before adding one: Spark copies tags to a replacement only if that has none.
    val reading =
      LogicalLinks.replacing(join)(unsplit.withNewChildren(unsplit.children.map(_.transform {
        case read: AQEShuffleReadExec =>
          read.child
      })))
    WholeReason.set(reading, because.given)
    reading
  }
}
