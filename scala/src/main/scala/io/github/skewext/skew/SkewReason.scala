package io.github.skewext.skew

import io.github.skewext.join.WholeReason

import org.apache.spark.sql.catalyst.trees.TreeNode

/** Why a join is not split. This is the only list of these reasons. */
sealed abstract class SkewReason(override val text: String, override val ofSkewedJoin: Boolean)
    extends WholeReason

object SkewReason {

  case object JoinType extends SkewReason("joins of this type cannot be split", false)

  case object KeyType
      extends SkewReason("the key has a collation, so equal keys may differ in their bytes", false)

  case object OuterCondition
      extends SkewReason(
        "an outer, semi or anti join has a condition on columns of both sides, besides the " +
          "equal keys",
        false)

  case object ConditionMayFail
      extends SkewReason(
        "an outer, semi or anti join has a condition on one side that may fail for rows " +
          "without a match",
        false)

  case object Ordered
      extends SkewReason("the join returns its rows in the order of the keys", false)

  case object InputNotPartitioned
      extends SkewReason("an input is neither a finished shuffle nor a bucketed table", false)

  case object BucketsOff extends SkewReason("splits of bucketed tables are switched off", false)

  case object InputNotDeterministic
      extends SkewReason(
        "an input is not deterministic: recomputing it may return different rows",
        false)

  case object InputsDiffer extends SkewReason("the inputs have different partitions", false)

  case object SplitBySpark extends SkewReason("Spark has already split it", false)

  case object NotSkewed extends SkewReason("no partition is skewed", false)

  case object KeysNotCounted
      extends SkewReason(
        "no partition is skewed by its size, and keys were not sampled because there are too " +
          "many partitions or map tasks",
        false)

  case object InputNotSliceable
      extends SkewReason(
        "an aggregate or join between the shuffle and this join cannot run on a part of the " +
          "skewed rows",
        true)

  case object NotStable
      extends SkewReason(
        "the tasks that share a partition must read the same keys, and recomputing an input may " +
          "change its keys",
        true)

  case object OneBlock
      extends SkewReason(
        "the skewed rows are in one row group of a file, or one map task wrote them and no " +
          "column divides them",
        true)

  case object TooMuchReread
      extends SkewReason(
        "its tasks would read more than spark.skewext.skew.maxRereadFactor allows",
        true)

  case object LittleGain extends SkewReason("a split would hardly shorten the longest task", true)

  case object KeysTogether
      extends SkewReason("an operator above requires all rows of a key in one partition", true)

  case object UserRepartition
      extends SkewReason("a repartition above the join requires its partitioning", true)

  case object BarrierStage
      extends SkewReason(
        "a barrier operator above (mapInPandas or mapInArrow with barrier=True) runs all tasks of the " +
          "stage at the same time, and more tasks may find no slots",
        true)

  case object MergeTarget
      extends SkewReason(
        "the cardinality check of a MERGE needs all matches of a target row in one task, so " +
          "only the target may be split",
        true)

  case object BucketedWrite extends SkewReason("its rows are written to a bucketed table", true)

  case object FewFiles
      extends SkewReason(
        "its tasks write files, and a split would write files below " +
          "spark.sql.adaptive.advisoryPartitionSizeInBytes or, to a partitioned table, more " +
          "files than Spark's own split",
        true)

  /** All reasons, in the order of the documentation. */
  val all: Seq[SkewReason] = Seq(
    KeysTogether,
    UserRepartition,
    BucketedWrite,
    BarrierStage,
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

  def set(node: TreeNode[_], reason: SkewReason): Unit = WholeReason.set(node, reason)

  /** The reason that an executed plan has for a join that is not split. */
  def of(node: TreeNode[_]): Option[SkewReason] =
    WholeReason.of(node).collect { case reason: SkewReason => reason }
}
