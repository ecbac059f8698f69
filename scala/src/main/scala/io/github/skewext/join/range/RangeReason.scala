package io.github.skewext.join.range

import io.github.skewext.platform.{Reason, Reasons}

/** Why a join that Spark runs as a nested loop, or as a Cartesian product, stays Spark's. */
final class RangeReason private (text: String, advice: String) extends Reason(text, advice)

object RangeReason extends Reasons[RangeReason] {

  private def reason(text: String, advice: String) = listed(new RangeReason(text, advice))

  val SwitchedOff =
    reason("spark.skewext.rangeJoin.enabled is false", "Set it to true for this query.")

  val Hint = reason(
    "a join hint of the query selects a nested loop or a Cartesian product",
    "Remove the hint if it is no longer needed. A hint BROADCAST does not prevent a range join.")

  val Streaming =
    reason("a side of the join is a stream", "Nothing to do: range joins join only batches.")

  val NonDeterministic =
    reason("the condition of the join is not deterministic", "Compute it in one of the sides.")

  val NoCondition = reason("the join has no condition", "Nothing to do: all pairs match.")

  val NoRange = reason(
    "the condition has no range",
    "A range has two comparisons, one in each direction, of a value of one side with a value of the " +
      "other side, such as a.t >= b.start AND a.t < b.end. Both values have the same type: numbers, " +
      "dates, timestamps, or strings without a collation.")

  val OneSided = reason(
    "the condition compares the sides in one direction only, so most pairs may match",
    "Add the other end of the range, such as AND a.t < b.t + INTERVAL 1 HOUR, if the rows have one.")
}
