package io.github.skewext.join

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.TreeNodeTag

/**
 * What the planner chose for a join. Adaptive execution keeps it when it plans the query again: a
 * broadcast may have begun, and the subqueries of filters are running.
 *
 * @param streamed the input to which all others are broadcast, if there is one
 * @param filters the run-time filters of each input, if they have been made
 */
case class PlannerChoices(
    streamed: Option[Int] = None,
    filters: Option[Map[Int, Seq[Expression]]] = None)

object PlannerChoices {

  private val tag = TreeNodeTag[PlannerChoices]("skewext.plannerChoices")

  def of(join: LogicalPlan): PlannerChoices = join.getTagValue(tag).getOrElse(PlannerChoices())

  def set(join: LogicalPlan, choices: PlannerChoices): Unit = join.setTagValue(tag, choices)

  /** They do not apply to a changed join. */
  def forget(join: LogicalPlan): Unit = join.unsetTagValue(tag)
}
