package io.github.skewext.join

import org.apache.spark.sql.catalyst.trees.{TreeNode, TreeNodeTag}

/** What a join of a plan was made from. */
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
