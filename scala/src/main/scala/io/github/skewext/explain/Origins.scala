package io.github.skewext.explain

import io.github.skewext.SkewConf
import io.github.skewext.multijoin.{LowerMultiFullJoin, MultiFullJoin}
import io.github.skewext.rewrite.RewriteReason

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** How joins came to be planned as they are, from what our rules have left on their nodes. */
private[explain] object Origins {

  def ofMultiJoin(join: Option[LogicalPlan]): Origin =
    join.flatMap(RewriteReason.madeOf(_)) match {
      case Some(joins) => Origin(Origin.Rewritten, s"$joins became one operator")
      case None => Origin(Origin.AskedFor, "one operator")
    }

  /** Of a multi-way join that Spark's broadcast joins do. */
  def ofBroadcast(join: MultiFullJoin): Origin = {
    val origin = ofMultiJoin(Some(join))
    val before = RewriteReason.madeOf(join).fold("")(joins => s"$joins became one join, and ")
    origin.copy(text = s"${before}all inputs but one are small enough to broadcast, so Spark's " +
      "broadcast joins do it and nothing is shuffled")
  }

  /** Of Spark's joins, the uppermost first. */
  def ofSparks(joins: Seq[LogicalPlan], enabled: Boolean): Origin = {
    val lowered = joins.flatMap(_.getTagValue(LowerMultiFullJoin.MadeFrom)).headOption
    val given = joins.flatMap(RewriteReason.of(_)).distinct
    (lowered, given) match {
      case (Some(description), _) =>
        Origin(
          Origin.SwitchedOff,
          s"asked for as one join, and planned as Spark's as ${SkewConf.ENABLED.key} is false",
          Some(description))
      case (None, Seq(one)) =>
        Origin(Origin.LeftAlone, one.reason.text, one.detail, Some(Advice.of(one.reason)))
      // Several chains that were looked at each for itself.
      case (None, several) if several.nonEmpty =>
        Origin(
          Origin.LeftAlone,
          several.map(_.text).mkString("; "),
          advice = Some(several.map(g => Advice.of(g.reason)).distinct.mkString(" ")))
      case _ if !enabled => Origin(Origin.LeftAlone, s"${SkewConf.ENABLED.key} is false")
      case _ => Origin(Origin.LeftAlone, NoChain)
    }
  }

  /** No rule had anything to say about it. */
  val NoChain = "it is no chain of joins on one key"
}
