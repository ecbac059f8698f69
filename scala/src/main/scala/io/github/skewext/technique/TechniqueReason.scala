package io.github.skewext.technique

import io.github.skewext.join.hint.Refusal

/** Why a technique is not applied to a join. This is the only list of these reasons. */
sealed abstract class TechniqueReason(val text: String) extends Product with Serializable {

  /** The reason with a detail of this query. */
  def apply(detail: String): TechniqueReason.Detailed = TechniqueReason.Detailed(this, Some(detail))

  def given: TechniqueReason.Detailed = TechniqueReason.Detailed(this, None)
}

object TechniqueReason {

  case object JoinType extends TechniqueReason("the technique does not support joins of this type")

  case object Streaming extends TechniqueReason("a side is a stream")

  case object NoEqualKeys extends TechniqueReason("the join compares no columns with =")

  case object KeyType
      extends TechniqueReason("the key has a collation, so equal keys may differ in their bytes")

  case object Condition
      extends TechniqueReason(
        "the join has a condition besides the equal keys, which affects unmatched rows")

  case object TooLarge extends TechniqueReason("no side is known to be small enough to broadcast")

  case object NotStable
      extends TechniqueReason("a side is read twice, and recomputing it may return different rows")

  case object MergeTarget
      extends TechniqueReason(
        "the join belongs to a MERGE, whose cardinality check needs all matches of a target " +
          "row in one task")

  case object CommonTable
      extends TechniqueReason(
        "the join is in a common table expression that is not deterministic and is read " +
          "several times")

  case object BarrierStage
      extends TechniqueReason(
        "a barrier operator above (mapInPandas or mapInArrow with barrier=True) supports no union " +
          "in its stage, which the technique needs")

  case object WrongOption extends TechniqueReason("an option is invalid")

  /** All reasons, in the order of the documentation. */
  val all: Seq[TechniqueReason] =
    Seq(
      JoinType,
      Streaming,
      NoEqualKeys,
      KeyType,
      Condition,
      TooLarge,
      NotStable,
      MergeTarget,
      CommonTable,
      BarrierStage,
      WrongOption)

  /** A reason and its detail, for one join. */
  case class Detailed(reason: TechniqueReason, detail: Option[String]) extends Refusal {
    override def text: String = reason.text + detail.map(d => s" ($d)").getOrElse("")
  }
}
