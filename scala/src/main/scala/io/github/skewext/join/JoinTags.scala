package io.github.skewext.join

import io.github.skewext.platform.{NodeReasons, Reason}

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.{TreeNode, TreeNodeTag}

/** What a join of a plan was made from. Rules leave it on the node, like the other types here. */
sealed trait JoinOrigin

object JoinOrigin {

  /** On nodes of skewext: the joins of the query that became this one, such as `3 full outer joins`. */
  case class Rewritten(joins: String) extends JoinOrigin

  /** On Spark's joins that broadcast the small inputs of a multi-way join. */
  case class Broadcasts(join: MultiFullJoin) extends JoinOrigin

  /** On Spark's joins that replace a multi-way join: its description. */
  case class Lowered(description: String) extends JoinOrigin

  /** On Spark's joins that were rewritten, and are planned as Spark does. */
  case object Undone extends JoinOrigin

  private val tag = TreeNodeTag[JoinOrigin]("skewext.origin")

  def set(node: TreeNode[_], origin: JoinOrigin): Unit = node.setTagValue(tag, origin)

  def of(node: TreeNode[_]): Option[JoinOrigin] = node.getTagValue(tag)

  /** The joins that were rewritten. None if the query called the join of skewext by name. */
  def rewrittenFrom(node: TreeNode[_]): Option[String] =
    of(node).collect { case Rewritten(joins) => joins }

  /** The multi-way join that one of Spark's joins is a part of. */
  def broadcastFrom(node: TreeNode[_]): Option[MultiFullJoin] =
    of(node).collect { case Broadcasts(join) => join }
}

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

/**
 * Why a skewed join stays whole. A node of the plan carries its reason as a tag.
 *
 * @param ofSkewedJoin whether the join is known to be skewed, so that the reason matters to users.
 */
abstract class WholeReason(text: String, advice: String, val ofSkewedJoin: Boolean)
    extends Reason(text, advice)

object WholeReason extends NodeReasons[WholeReason] {

  /** The end of a node's text in plans, if it is a skewed join that stays whole. */
  def suffix(node: TreeNode[_]): String =
    of(node).filter(_.reason.ofSkewedJoin).fold("")(given => s", not split: ${given.text}")
}
