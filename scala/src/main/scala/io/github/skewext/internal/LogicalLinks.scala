package io.github.skewext.internal

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec

/**
 * Links from physical to logical nodes, which adaptive execution needs to plan a query again.
 *
 * When a stage is done, Spark finds the topmost physical node that is linked to the stage's logical
 * node, and replaces the logical node by the stage below it. For example, a filter and a cached table
 * are both linked to the filter:
 * {{{
 * Filter                      linked to Filter
 *   TableCacheQueryStage      linked to Filter (inherited)
 * }}}
 * If a node without a link takes the place of the physical filter, Spark finds the stage instead, and
 * the next plan has no filter: wrong rows. So every node of ours that takes the place of another one,
 * or that stands between a node and its child, gets its links here.
 *
 * Nodes that a rule adds anew for each plan and that change no row, as Spark's own exchanges and sorts
 * for a join and our [[io.github.skewext.execution.split.KeySketchExec]], need no link.
 */
object LogicalLinks {

  private val Links = Seq(
    AdaptiveSparkPlanExec.TEMP_LOGICAL_PLAN_TAG,
    SparkPlan.LOGICAL_PLAN_TAG,
    SparkPlan.LOGICAL_PLAN_INHERITED_TAG)

  /** Gives `node` all tags of the node that it replaces; `node` must not have any tags yet. */
  def replacing[P <: SparkPlan](replaced: SparkPlan)(node: P): P = {
    node.copyTagsFrom(replaced)
    node
  }

  /** Gives `node` the links of its child, whose rows it passes on in other partitions or order. */
  def wrapping[P <: SparkPlan](child: SparkPlan)(node: P): P = {
    Links.foreach(tag => child.getTagValue(tag).foreach(node.setTagValue(tag, _)))
    node
  }
}
