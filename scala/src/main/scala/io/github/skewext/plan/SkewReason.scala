package io.github.skewext.plan

import org.apache.spark.sql.catalyst.trees.{TreeNode, TreeNodeTag}

/**
 * Why a join is not split. This is the only list of these reasons. A node of the plan carries its
 * reason as a tag.
 *
 * @param ofSkewedJoin whether the join is known to be skewed, so that the reason matters to users.
 */
sealed abstract class SkewReason(val text: String, val ofSkewedJoin: Boolean)

object SkewReason {

  case object JoinType extends SkewReason("the type of the join", false)

  case object KeyType
      extends SkewReason("the join compares keys by a collation, and not by their bytes", false)

  case object OuterCondition
      extends SkewReason(
        "an outer, semi or anti join has a condition on both sides besides equal keys",
        false)

  case object ConditionMayFail
      extends SkewReason(
        "an outer, semi or anti join has a condition on one side that may fail for rows without a match",
        false)

  case object Ordered extends SkewReason("the join gives its rows in the order of the keys", false)

  case object InputNotPartitioned
      extends SkewReason("an input is made neither of shuffles that are done nor of buckets", false)

  case object BucketsOff extends SkewReason("spark.skewext.bucket.skew.enabled is false", false)

  case object InputNotDeterministic
      extends SkewReason("an input may be another one when it is computed twice", false)

  case object InputsDiffer
      extends SkewReason("the inputs are not read in the same partitions", false)

  case object SplitBySpark extends SkewReason("Spark has split it", false)

  case object NotSkewed extends SkewReason("no partition is skewed", false)

  case object KeysNotCounted
      extends SkewReason(
        "no partition is skewed by its size, and keys were not counted: there are too many partitions, " +
          "or map tasks for them",
        false)

  case object InputNotSliceable
      extends SkewReason(
        "between shuffle and join the skewed rows are aggregated, or joined as a part of them must not be",
        true)

  case object NotStable
      extends SkewReason(
        "several tasks would have to agree on which keys match, and an input may have other keys when " +
          "its rows are made again",
        true)

  case object OneBlock
      extends SkewReason(
        "one row group of a file has the skewed rows, or one map task wrote them and they cannot be " +
          "told apart by what is in them",
        true)

  case object TooMuchReread
      extends SkewReason(
        "its tasks would do more work than spark.skewext.skew.maxRereadFactor allows",
        true)

  case object LittleGain
      extends SkewReason(
        "its longest task would not be shorter by spark.skewext.skew.minGain",
        true)

  case object KeysTogether
      extends SkewReason("an operator above needs the rows of a key in one partition", true)

  case object UserRepartition
      extends SkewReason("a repartition above the join asks for its partitions as they are", true)

  case object MergeTarget
      extends SkewReason(
        "a MERGE looks in each task for target rows that match twice, so only the target may be split",
        true)

  case object BucketedWrite extends SkewReason("its rows are written to buckets", true)

  case object FewFiles
      extends SkewReason(
        "its tasks write files, which would be more than Spark's own split would make of the partition",
        true)

  /** All reasons, in the order of the documentation. */
  val all: Seq[SkewReason] = Seq(
    KeysTogether,
    UserRepartition,
    BucketedWrite,
    FewFiles,
    MergeTarget,
    NotStable,
    OneBlock,
    InputNotSliceable,
    TooMuchReread,
    LittleGain,
    NotSkewed,
    KeysNotCounted,
    SplitBySpark,
    JoinType,
    KeyType,
    OuterCondition,
    ConditionMayFail,
    Ordered,
    InputNotPartitioned,
    BucketsOff,
    InputNotDeterministic,
    InputsDiffer)

  private val tag = TreeNodeTag[SkewReason]("skewext.notSplit")

  def set(node: TreeNode[_], reason: SkewReason): Unit = node.setTagValue(tag, reason)

  /** The reason that an executed plan has for a join that is not split. */
  def of(node: TreeNode[_]): Option[SkewReason] = node.getTagValue(tag)
}
