package io.github.skewext.join

import io.github.skewext.platform.{NodeReasons, Reason}

import org.apache.spark.sql.catalyst.trees.TreeNode

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
