package io.github.skewext.platform

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec

/**
 * Links from physical to logical nodes, which adaptive execution needs to plan a query again.
 *
 * When a stage is done, Spark finds the topmost physical node that is linked to the stage's logical
 * node, and replaces the logical node by the stage below it. For example, a filter and a cached
 * table are both linked to the filter:
 * {{{
 * Filter                      linked to Filter
 *   TableCacheQueryStage      linked to Filter (inherited)
 * }}}
 * If a node without a link replaces the physical filter, Spark finds the stage instead, and the
 * next plan has no filter: wrong rows. So this object sets the links of each skewext node that
 * replaces another node, or is placed between a node and its child.
 *
 * A node that a rule adds to every plan and that changes no row needs no link. Examples are Spark's
 * exchanges and sorts for a join, and [[io.github.skewext.skew.run.KeySketchExec]].
 */
object LogicalLinks {

  private val Links = Seq(
    AdaptiveSparkPlanExec.TEMP_LOGICAL_PLAN_TAG,
    SparkPlan.LOGICAL_PLAN_TAG,
    SparkPlan.LOGICAL_PLAN_INHERITED_TAG)

  /** Copies all tags of the replaced node to `node`, which must not have any tags yet. */
  def replacing[P <: SparkPlan](replaced: SparkPlan)(node: P): P = {
    node.copyTagsFrom(replaced)
    node
  }

  /**
   * Copies the links of a child to `node`, which returns its rows in other partitions or another
   * order.
   */
  def wrapping[P <: SparkPlan](child: SparkPlan)(node: P): P = {
    Links.foreach(tag => child.getTagValue(tag).foreach(node.setTagValue(tag, _)))
    node
  }
}
