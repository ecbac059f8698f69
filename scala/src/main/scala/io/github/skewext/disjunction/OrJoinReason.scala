package io.github.skewext.disjunction

import io.github.skewext.platform.{NodeReasons, Reason}

/** Why a join whose condition is an OR stays Spark's nested loop. The join has it as a tag. */
final class OrJoinReason private (text: String, advice: String) extends Reason(text, advice)

object OrJoinReason extends NodeReasons[OrJoinReason] {

  private def reason(text: String, advice: String) = listed(new OrJoinReason(text, advice))

  val SwitchedOff =
    reason("spark.skewext.orJoin.enabled is false", "Set it to true for this query.")

  val Hint = reason(
    "the join with OR has a join hint of the query",
    "Remove the hint if it is no longer needed.")

  val Streaming = reason(
    "a side of the join with OR is a stream",
    "Nothing to do. In foreachBatch, each batch is a table.")

  val RowLevelWrite = reason(
    "the join with OR belongs to a MERGE, UPDATE or DELETE",
    "Write the matching rows to a table first, and join the target with it on equal keys.")

  val BarrierStage = reason(
    "a barrier operator of the query (mapInPandas or mapInArrow with barrier=True) supports no " +
      "union in its stage, which outer joins with OR need",
    "Write the result of the join to a table first.")

  val NonDeterministic = reason(
    "the condition with OR is not deterministic",
    "Compute the expression in one of the sides.")

  val Subquery = reason(
    "the condition with OR contains a subquery",
    "Compute the subquery as a column of one of the sides.")

  val PartWithoutKey = reason(
    "a part of the OR compares no columns of both sides with =",
    "Spark compares all pairs of rows for such a part. Add an equality to the part, or write it as " +
      "a join of its own.")

  val KeyType = reason(
    "a part of the OR has only keys of types that are not shuffled by their bytes",
    "In each side, cast the key to a type that compares by its bytes, such as a string in " +
      "UTF8_BINARY.")

  val MayFail = reason(
    "an expression in the OR may fail or is a user-defined function, and equal keys need it for " +
      "rows for which Spark may not evaluate it",
    "Compute the expression as a column of its side, and compare the columns.")

  val TooManyParts = reason(
    "the OR has too many parts",
    "Each part shuffles both sides once more. Write some parts as one equality, such as an equality " +
      "of arrays or of the values of a lookup table.")

  val FewPairs = reason(
    "the sides are so small that comparing all pairs of rows takes less time than a join on " +
      "equal keys",
    "Nothing to do. If a side is larger than Spark estimates, run ANALYZE TABLE.")

  val ManyReads = reason(
    "a side of the join with OR has joins with OR, which the plan would read too often",
    "Each outer join with OR reads its sides several times, and so the joins below it. Write the " +
      "result of some of them to a table first.")

  val NotStable = reason(
    "a side of the join with OR would be read twice, and recomputing it may return different rows",
    "The side has rand(), limit, a sum of floating-point numbers or the like, or it is an RDD or " +
      "another system. Checkpoint it, or write it to a table first. An inner join reads each side " +
      "once and does not need this.")
}
