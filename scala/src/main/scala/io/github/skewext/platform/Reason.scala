package io.github.skewext.platform

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.sql.catalyst.trees.{TreeNode, TreeNodeTag}

/**
 * Why skewext leaves a part of a plan to Spark.
 *
 * @param text the reason, as `explain` shows it.
 * @param advice its cause, and a change that a user can make.
 */
abstract class Reason(val text: String, val advice: String) extends Serializable {

  /** The reason with a detail of this query. */
  def apply(detail: String): Reason.Detailed[this.type] = Reason.Detailed(this, Some(detail))

  def given: Reason.Detailed[this.type] = Reason.Detailed(this)

  override def toString: String = text
}

object Reason {

  /** A reason and its detail, for one node of a plan. */
  case class Detailed[+R <: Reason](reason: R, detail: Option[String] = None) {
    def text: String = reason.text + detail.map(d => s" ($d)").getOrElse("")
  }
}

/** The only list of the reasons of one kind. */
abstract class Reasons[R <: Reason] {

  type Detailed = Reason.Detailed[R]

  private val entries = ArrayBuffer.empty[R]

  protected def listed(reason: R): R = {
    entries += reason
    reason
  }

  /** All reasons, in the order of the documentation. */
  def all: Seq[R] = entries.toSeq
}

/** Reasons that nodes of a plan carry: at most one of each kind. */
abstract class NodeReasons[R <: Reason] extends Reasons[R] {

  def set(node: TreeNode[_], given: Detailed): Unit =
    node.setTagValue(NodeReasons.tag, NodeReasons.of(node).updated(this, given))

  def clear(node: TreeNode[_]): Unit =
    if (of(node).isDefined) node.setTagValue(NodeReasons.tag, NodeReasons.of(node) - this)

  /** The reason that a node has. */
  def of(node: TreeNode[_]): Option[Detailed] =
    NodeReasons.of(node).get(this).map(_.asInstanceOf[Detailed])
}

object NodeReasons {

  private val tag = TreeNodeTag[Map[NodeReasons[_], Reason.Detailed[_]]]("skewext.reasons")

  private def of(node: TreeNode[_]): Map[NodeReasons[_], Reason.Detailed[_]] =
    node.getTagValue(tag).getOrElse(Map.empty)
}
