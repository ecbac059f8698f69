package io.github.skewext.join.probe

import io.github.skewext.platform.{Reason, Reasons}

/** Why a join that Spark shuffles stays Spark's sort-merge join or shuffled hash join. */
final class ProbeReason private (text: String, advice: String) extends Reason(text, advice)

object ProbeReason extends Reasons[ProbeReason] {

  private def reason(text: String, advice: String) = listed(new ProbeReason(text, advice))

  val SwitchedOff =
    reason("spark.skewext.join.enabled is false", "Set it to true for this query.")

  val Hint = reason(
    "a join hint of the query selects the operator",
    "Remove the hint if it is no longer needed.")

  val Streaming =
    reason("a side of the join is a stream", "Nothing to do: the operator joins only batches.")

  val NonDeterministic =
    reason("the condition of the join is not deterministic", "Compute it in one of the sides.")

  val KeyType = reason(
    "a key has a type whose equal values may have different bytes",
    "In each side, cast the key to a type that compares by its bytes, such as a string in UTF8_BINARY.")

  val Splits = reason(
    "Spark splits skewed partitions of its own joins, and skewext's splits are off",
    "Set spark.skewext.skew.enabled to true. On Spark 3.5.0 skewext splits no partition.")

  val StoragePartitions = reason(
    "both sides may have the same partitions in their storage, which Spark joins without a shuffle",
    "Nothing to do. Set spark.sql.sources.v2.bucketing.enabled to false to shuffle them instead.")
}
