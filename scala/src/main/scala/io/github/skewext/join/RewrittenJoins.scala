package io.github.skewext.join

import org.apache.spark.sql.catalyst.trees.{TreeNode, TreeNodeTag}

/** Which joins of Spark a multi-way join was rewritten from, as tags on plans. */
object RewrittenJoins {

  private val rewritten = TreeNodeTag[String]("skewext.rewritten")

  private val undone = TreeNodeTag[Unit]("skewext.rewriteUndone")

  def set(node: TreeNode[_], joins: String): Unit = node.setTagValue(rewritten, joins)

  /**
   * The joins that were rewritten into a multi-way join, such as `3 full outer joins`. None if the
   * query called the multi-way join by name.
   */
  def of(node: TreeNode[_]): Option[String] = node.getTagValue(rewritten)

  /** Marks a join of Spark that was rewritten, and is planned as Spark does. */
  def setUndone(node: TreeNode[_]): Unit = node.setTagValue(undone, ())

  def isUndone(node: TreeNode[_]): Boolean = node.getTagValue(undone).isDefined
}
