package io.github.skewext.rewrite

import io.github.skewext.join.RewrittenJoins

import org.apache.spark.sql.catalyst.trees.{TreeNode, TreeNodeTag}

/**
 * Why a chain of joins is left to Spark. This is the only list of these reasons. The top join of a
 * chain carries its reason as a tag, with the affected join or expression as detail.
 */
sealed abstract class RewriteReason(val text: String) extends Product with Serializable

object RewriteReason {

  case object SwitchedOff extends RewriteReason("spark.skewext.multiJoin.rewrite.enabled is false")

  case object TwoInputs
      extends RewriteReason("it has two inputs, and Spark shuffles each of them at most once")

  case object FewInputs
      extends RewriteReason(
        "the chain has fewer inputs on one key than spark.skewext.multiJoin.rewrite.minInputs")

  case object MixedOff
      extends RewriteReason(
        "the chain has inner, left, right or anti joins for which Spark needs no extra " +
          "shuffle, and spark.skewext.multiJoin.rewrite.mixed.enabled is false")

  case object Broadcast extends RewriteReason("an input is small enough for Spark to broadcast it")

  case object PartitionPruning
      extends RewriteReason("Spark prunes partitions of an input by the keys of a join")

  case object StoragePartitions
      extends RewriteReason(
        "Spark joins the first two of its three inputs by their storage partitions, which leaves two " +
          "shuffles instead of three")

  case object JoinType
      extends RewriteReason(
        "a join has a type that is not rewritten: cross, left semi or existence")

  case object Hint extends RewriteReason("a hint selects the strategy of one of its joins")

  case object NoCondition extends RewriteReason("a join compares no keys with =")

  case object ResidualCondition
      extends RewriteReason("a join has a condition besides the equality of keys from both sides")

  case object NullSafeEquality
      extends RewriteReason("a join compares keys with <=>, which matches nulls")

  case object RepeatedKey
      extends RewriteReason("a join compares one key column with several columns of the other side")

  case object PartialKey
      extends RewriteReason(
        "a join compares with the keys of only some inputs, although the row may come from " +
          "another input")

  case object DifferentKeys extends RewriteReason("its joins have different keys")

  case object KeyExpression
      extends RewriteReason("a join compares with an expression over the key of the joins below")

  case object LossyCast
      extends RewriteReason(
        "a join casts the key to a type in which different keys may become equal")

  case object KeyType
      extends RewriteReason("the key has a type that the multi-way join cannot compare")

  case object NonDeterministic
      extends RewriteReason("an expression between its joins is not deterministic")

  case object PythonFunction
      extends RewriteReason(
        "a Python function between its joins would also run on rows that it does not receive now")

  case object RepeatedExpression
      extends RewriteReason("an expression between its joins would be computed several times")

  case object Subquery extends RewriteReason("an expression between its joins contains a subquery")

  case object FilterBetween extends RewriteReason("a filter separates its joins")

  case object RolesDiffer
      extends RewriteReason(
        "a join requires a row of the joins below, from whichever of their inputs")

  case object OuterReference extends RewriteReason("it refers to columns of the outer query")

  case object SharedSubquery
      extends RewriteReason("an input has a correlated subquery over a table that it also reads")

  case object Streaming extends RewriteReason("it is a streaming query")

  /** All reasons, in the order of the documentation. */
  val all: Seq[RewriteReason] = Seq(
    SwitchedOff,
    TwoInputs,
    FewInputs,
    MixedOff,
    Broadcast,
    PartitionPruning,
    StoragePartitions,
    JoinType,
    Hint,
    NoCondition,
    ResidualCondition,
    NullSafeEquality,
    RepeatedKey,
    PartialKey,
    DifferentKeys,
    KeyExpression,
    LossyCast,
    KeyType,
    NonDeterministic,
    PythonFunction,
    RepeatedExpression,
    Subquery,
    FilterBetween,
    RolesDiffer,
    OuterReference,
    SharedSubquery,
    Streaming)

  /** A reason and its detail, as stored on a join. */
  case class Detailed(reason: RewriteReason, detail: Option[String]) {
    def text: String = reason.text + detail.map(d => s" ($d)").getOrElse("")
  }

  /** Why a chain with fewer inputs than the least number is not rewritten. */
  def few(inputs: Int): Detailed =
    if (inputs == 2) Detailed(TwoInputs, None)
    else Detailed(FewInputs, Some(s"$inputs inputs"))

  private val notRewritten = TreeNodeTag[Detailed]("skewext.notRewritten")

  def set(node: TreeNode[_], given: Detailed): Unit = node.setTagValue(notRewritten, given)

  def clear(node: TreeNode[_]): Unit = node.unsetTagValue(notRewritten)

  /** The reason why the chain with this top join is left to Spark. */
  def of(node: TreeNode[_]): Option[Detailed] = node
    .getTagValue(notRewritten)
    .orElse(if (RewrittenJoins.isUndone(node)) Some(Detailed(StoragePartitions, None)) else None)
}
