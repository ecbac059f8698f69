package io.github.skewext.bucket

import org.apache.spark.sql.catalyst.trees.{TreeNode, TreeNodeTag}

/**
 * Why no buckets of a table are pruned. This is the only list of these reasons. A node of the plan
 * carries its reason as a tag, with the affected columns as detail.
 */
sealed abstract class BucketReason(val text: String) extends Product with Serializable

object BucketReason {

  case object SwitchedOff extends BucketReason("spark.skewext.bucket.pruning.enabled is false")

  case object NoCondition extends BucketReason("no filter gives values for a bucket column")

  case object NotFixed
      extends BucketReason(
        "the filters do not bind every bucket column, so no bucket can be pruned")

  case object HashUnknown
      extends BucketReason(
        "equal values of a bucket column may be in several buckets, because of its type")

  case object TooManyValues
      extends BucketReason("the filters allow too many values of the bucket columns")

  /** All reasons, in the order of the documentation. */
  val all: Seq[BucketReason] = Seq(NoCondition, NotFixed, HashUnknown, TooManyValues, SwitchedOff)

  /** A reason and its detail, as stored on a node. */
  case class Detailed(reason: BucketReason, detail: Option[String] = None) {
    def text: String = reason.text + detail.map(d => s" ($d)").getOrElse("")
  }

  private val joinKeys = TreeNodeTag[Unit]("skewext.bucketsOfJoinKeys")

  private val notPruned = TreeNodeTag[Detailed]("skewext.bucketsNotPruned")

  def set(node: TreeNode[_], given: Detailed): Unit = node.setTagValue(notPruned, given)

  def clear(node: TreeNode[_]): Unit = node.unsetTagValue(notPruned)

  /** The reason that the filters of a query prune no bucket of a scan. */
  def of(node: TreeNode[_]): Option[Detailed] = node.getTagValue(notPruned)

  def setByJoinKeys(node: TreeNode[_]): Unit = node.setTagValue(joinKeys, ())

  /** Whether a scan skips the buckets that cannot contain a key of a join's other side. */
  def isByJoinKeys(node: TreeNode[_]): Boolean = node.getTagValue(joinKeys).isDefined
}
