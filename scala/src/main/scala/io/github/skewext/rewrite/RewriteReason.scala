package io.github.skewext.rewrite

import io.github.skewext.join.JoinOrigin
import io.github.skewext.platform.{NodeReasons, Reason}

import org.apache.spark.sql.catalyst.trees.TreeNode

/**
 * Why a chain of joins is left to Spark. The top join of a chain carries its reason as a tag, with
 * the affected join or expression as detail.
 */
final class RewriteReason private (text: String, advice: String) extends Reason(text, advice)

object RewriteReason extends NodeReasons[RewriteReason] {

  private def reason(text: String, advice: String) = listed(new RewriteReason(text, advice))

  val SwitchedOff =
    reason("spark.skewext.multiJoin.rewrite.enabled is false", "Set it to true for this query.")

  val TwoInputs = reason(
    "it has two inputs, and Spark shuffles each of them at most once",
    "Nothing to do: it is a join of two sides.")

  val NoShuffleSaved = reason(
    "the chain has inner, left, right or anti joins for which Spark needs no extra shuffle",
    "Nothing to do: each of them is a join of two sides.")

  val PartitionPruning = reason(
    "Spark prunes partitions of an input by the keys of a join",
    "Nothing to do: pruned partitions cost nothing. Spark's setting is " +
      "spark.sql.optimizer.dynamicPartitionPruning.enabled.")

  val StoragePartitions = reason(
    "Spark joins the first two of its three inputs by their storage partitions, which leaves " +
      "two shuffles instead of three",
    "If the third input is partitioned like the others, nothing is shuffled.")

  val JoinType = reason(
    "a join has a type that is not rewritten: cross, left semi or existence",
    "For an anti join, use multi_join with the role excluded. The other types remain Spark's " +
      "joins.")

  val Hint = reason(
    "a hint selects the strategy of one of its joins",
    "Remove the hint if it is no longer needed.")

  val NoCondition =
    reason("a join compares no keys with =", "Compare the key with = in every join of the chain.")

  val ResidualCondition = reason(
    "a join has a condition besides the equality of keys from both sides",
    "Move a condition on one input into the query of that input, and other conditions into a " +
      "WHERE above all joins, if that gives the intended result.")

  val NullSafeEquality = reason(
    "a join compares keys with <=>, which matches nulls",
    "Use = if null keys need not match. Otherwise replace nulls by a value first.")

  val PartialKey = reason(
    "a join compares with the keys of only some inputs, although the row may come from another " +
      "input",
    "For one row per key, join with USING, or compare with a coalesce over the keys of all " +
      "previous tables. That is a different result: see semantics.md.")

  val DifferentKeys = reason(
    "its joins have different keys",
    "Consecutive joins on one key become one operator. Joins on other keys remain Spark's.")

  val KeyExpression = reason(
    "a join compares with an expression over the key of the joins below",
    "Compute the expression in each input, and join on that column.")

  val LossyCast = reason(
    "a join casts the key to a type in which different keys may become equal",
    "In each input, cast the key to the type whose equality you need.")

  val KeyType = reason(
    "the key has a type that the multi-way join cannot compare",
    "In each input, cast the key to a type that has an order.")

  val NonDeterministic = reason(
    "an expression between its joins is not deterministic",
    "Compute it in one of the inputs, or above all joins.")

  val SlowExpression = reason(
    "an expression between its joins is slow, such as a user-defined function",
    "One operator would evaluate it for each row of the result. Compute it in one of the inputs, " +
      "or above all joins.")

  val RepeatedExpression = reason(
    "an expression between the joins of the chain would be computed several times",
    "In one operator, each use of its column would compute it again. Compute it in one of the " +
      "inputs, or once above all joins.")

  val Subquery = reason(
    "an expression between its joins contains a subquery",
    "Compute it in one of the inputs, or above all joins.")

  val FilterBetween = reason(
    "a filter separates its joins",
    "Move the filter into an input or above all joins, if that gives the intended result.")

  val RolesDiffer = reason(
    "a join needs a match in any one of the inputs below it",
    "Use multi_join with each input required or optional, if that gives the intended result.")

  val OuterReference =
    reason("it refers to columns of the outer query", "Write the subquery as a join.")

  val SharedSubquery = reason(
    "an input has a correlated subquery over a table that it also reads",
    "Write the subquery as a join.")

  val Streaming =
    reason("it is a streaming query", "Nothing to do: the operator supports only batch queries.")

  /** The reason why the chain with this top join is left to Spark. */
  override def of(node: TreeNode[_]): Option[Detailed] =
    super
      .of(node)
      .orElse(JoinOrigin.of(node).collect { case JoinOrigin.Undone => StoragePartitions.given })
}
