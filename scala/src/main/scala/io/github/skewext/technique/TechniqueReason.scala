package io.github.skewext.technique

import io.github.skewext.platform.{Reason, Reasons}

/** Why a technique is not applied to a join. */
final class TechniqueReason private (text: String, advice: String) extends Reason(text, advice) {

  def refusesIf(is: Boolean): Either[TechniqueReason.Detailed, Unit] = Either.cond(!is, (), given)
}

object TechniqueReason extends Reasons[TechniqueReason] {

  private def reason(text: String, advice: String) = listed(new TechniqueReason(text, advice))

  val JoinType = reason(
    "the technique does not support joins of this type",
    "Use another technique: adaptive supports joins of every type.")

  val Streaming = reason(
    "a side is a stream",
    "Nothing to do: the rows of a key arrive in many batches, and Spark's own join keeps them " +
      "together. In foreachBatch, each batch is a table.")

  val NoEqualKeys = reason(
    "the join compares no columns with =",
    "All techniques find the rows of a key by =. Add a condition that compares a column of one " +
      "side with a column of the other side by =.")

  val KeyType = reason(
    "the key has a collation, or a user-defined type, and equal keys may differ in their bytes",
    "Compare an expression without a collation, such as lower(k) COLLATE UTF8_BINARY.")

  val Condition = reason(
    "the join has a condition besides the equal keys, which affects unmatched rows",
    "Move a condition on one side into the query of that side, or use the technique adaptive.")

  val TooLarge = reason(
    "no side is known to be small enough to broadcast",
    "Use iterative_broadcast, adaptive or salted. If driver and executors have the memory, raise " +
      "the limit that is named: spark.skewext.skewJoin.maxBroadcastBytes, or " +
      "spark.driver.maxResultSize when the application starts.")

  val NotStable = reason(
    "a side is read twice, and recomputing it may return different rows",
    "The side has rand(), limit, a sum of floating-point numbers or the like, or it is an RDD, " +
      "a Python list or another system, or files whose reader drops records (DROPMALFORMED, " +
      "ignoreCorruptFiles, ignoreMissingFiles). Checkpoint it, write it to a table first, or use a " +
      "technique that reads each side once: adaptive or broadcast.")

  val MergeTarget = reason(
    "the join belongs to a MERGE, whose cardinality check needs all matches of a target row in " +
      "one task",
    "Nothing to do: the extension splits the target if it is skewed. See merge.md.")

  val WrittenTable = reason(
    "a side is the table that a MERGE, UPDATE or DELETE writes",
    "Nothing to do: Spark finds the rows and files to write by the ids of its columns, and the " +
      "technique would change these. The extension splits skewed partitions of the join. See merge.md.")

  val CommonTable = reason(
    "the join is in a common table expression that is not deterministic and is read several times",
    "Spark computes it once, and refers to its columns by ids that the technique would change. " +
      "Write it to a table first, or move rand(), uuid() or the Python function out of it.")

  val CorrelatedSubquery = reason(
    "the condition has a correlated subquery, and the session started without the extension",
    "Start the session with the extension, or join with the table of the subquery instead.")

  val Subquery = reason(
    "the join is an IN or EXISTS predicate",
    "Spark makes it a join only after techniques are planned. Write LEFT SEMI JOIN for IN and " +
      "EXISTS, or LEFT ANTI JOIN for NOT EXISTS.")

  val BarrierStage = reason(
    "a barrier operator above (mapInPandas or mapInArrow with barrier=True) supports no union " +
      "in its stage, which the technique needs",
    "Repartition between the join and the barrier operator: then the technique applies.")

  val ConstantKey = reason(
    "a key column is constant, so Spark no longer compares it, and the hot keys have a value for it",
    "Leave the column out of the key. Filter the other side by the constant instead.")

  val Failed = reason(
    "planning the technique failed",
    "The join is Spark's own. The list of failures has the error: report it as a bug.")

  val WrongOption = reason("an option is invalid", "Correct the hint.")
}
