package io.github.skewext.latest

import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.window.{Partial, WindowGroupLimitExec}
import org.apache.spark.sql.execution.{SortExec, SparkPlan}

/**
 * Removes Spark's limit for each map task, and its sort, where the rows of a key are in one partition
 * already, as above a join by the key. [[RewriteRowNumbers]] has left the limit.
 */
object DropGroupLimits extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan = plan.transformUp { case latest: LatestRowsExec =>
    val kept = below(latest.child)
    if (kept eq latest.child) latest else latest.withNewChildren(Seq(kept))
  }

  /** The child of latest rows that this rule leaves. */
  def below(child: SparkPlan): SparkPlan = child match {
    case limit: WindowGroupLimitExec if limit.mode == Partial =>
      limit.child match {
        case sort: SortExec if !sort.global => sort.child
        case sorted => sorted
      }
    case other => other
  }
}
