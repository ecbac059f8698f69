package io.github.skewext.join

import org.apache.spark.sql.catalyst.trees.{TreeNode, TreeNodeTag}

/** Why a skewed join stays whole. A node of the plan carries its reason as a tag. */
trait WholeReason {

  def text: String

  /** Whether the join is known to be skewed, so that the reason matters to users. */
  def ofSkewedJoin: Boolean
}

object WholeReason {

  private val tag = TreeNodeTag[WholeReason]("skewext.notSplit")

  def set(node: TreeNode[_], reason: WholeReason): Unit = node.setTagValue(tag, reason)

  /** The end of a node's text in plans, if it is a skewed join that stays whole. */
  def suffix(node: TreeNode[_]): String =
    of(node).filter(_.ofSkewedJoin).fold("")(reason => s", not split: ${reason.text}")

  /** The reason that an executed plan has for a join that is not split. */
  def of(node: TreeNode[_]): Option[WholeReason] = node.getTagValue(tag)
}
