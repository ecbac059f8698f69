package io.github.skewext.merge

import io.github.skewext.facts.{BuiltinShuffledJoin, JoinHints}
import io.github.skewext.join.WholeReason
import io.github.skewext.platform.LogicalLinks

import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec
import org.apache.spark.sql.execution.joins.ShuffledJoin
import org.apache.spark.sql.execution.{PartialReducerPartitionSpec, SparkPlan}

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
    plan.transformUp {
      case BuiltinShuffledJoin(join) if join.isSkewJoin && replicates(join) => whole(join)
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
