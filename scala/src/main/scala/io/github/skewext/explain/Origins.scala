package io.github.skewext.explain

import io.github.skewext.internal.{Guard, SkewConf}
import io.github.skewext.optimizer.LowerMultiFullJoin
import io.github.skewext.plan.{MultiFullJoin, RewriteReason, TechniqueHint}
import io.github.skewext.rewrite.RewriteJoinChains

import org.apache.spark.sql.catalyst.plans.logical.{Filter, Join, LogicalPlan, Project}
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage

/** How joins came to be planned as they are, from what our rules have left on their nodes. */
private[skewext] object Origins {

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

  /**
   * Of Spark's joins, the uppermost first.
   *
   * @param off why no join can be rewritten at all
   */
  def ofSparks(joins: Seq[LogicalPlan], off: Option[String]): Origin =
    byTechnique(joins).getOrElse(ofChain(joins, off))

  /** Of joins that `skew_join`, or its hint, has asked a technique for. */
  private def byTechnique(joins: Seq[LogicalPlan]): Option[Origin] = {
    val contents = joins.flatMap(TechniqueHint.of(_))
    val origins = contents.distinct.map {
      case TechniqueHint.Made(technique, _, how) =>
        Origin(Origin.AskedFor, s"skew_join by $technique: $how")
      case TechniqueHint.Refused(technique, reason) =>
        Origin(
          Origin.LeftAlone,
          s"skew_join by $technique is Spark's own join: ${reason.reason.text}",
          reason.detail,
          Some(Advice.of(reason.reason)))
      case TechniqueHint.Wanted(technique, _, _) =>
        Origin(
          Origin.SwitchedOff,
          s"asked for by skew_join ($technique), and planned as Spark's own join")
    }
    origins.reduceOption { (one, other) =>
      one.copy(
        text = s"${one.text}; ${other.text}",
        detail = one.detail.orElse(other.detail),
        advice = one.advice.orElse(other.advice))
    }
  }

  private def ofChain(joins: Seq[LogicalPlan], off: Option[String]): Origin = {
    val lowered = joins.flatMap(_.getTagValue(LowerMultiFullJoin.MadeFrom)).headOption
    val given = if (off.isEmpty && lowered.isEmpty) reasons(joins) else Nil
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
      case _ => Origin(Origin.LeftAlone, off.getOrElse(NoChain))
    }
  }

  /**
   * Rules of Spark's that make a new join of an old one lose its reason. The same join is left alone
   * for the same reason again.
   */
  private def reasons(joins: Seq[LogicalPlan]): Seq[RewriteReason.Detailed] = {
    val kept = joins.flatMap(RewriteReason.of(_))
    val lost = joins.headOption.filter(RewriteReason.of(_).isEmpty).toSeq.flatMap { top =>
      Guard.protect("looking for the reason of a join", Seq.empty[RewriteReason.Detailed]) {
        following(RewriteJoinChains(withoutStages(top))).flatMap(RewriteReason.of(_))
      }
    }
    val all = (lost ++ kept).distinct
    // What a join above could not be added to is short for that reason.
    val others = all.filter(_.reason != RewriteReason.FewInputs)
    if (others.isEmpty) all.take(1) else others
  }

  /** A copy of a query, in which adaptive execution has replaced nothing. */
  private def withoutStages(plan: LogicalPlan): LogicalPlan = plan.clone().transformUp {
    case stage: LogicalQueryStage => withoutStages(stage.logicalPlan)
  }

  /** The joins that follow each other from here on. */
  private def following(plan: LogicalPlan): Seq[LogicalPlan] = plan match {
    case join: Join => join +: join.children.flatMap(following)
    case _: Project | _: Filter => plan.children.flatMap(following)
    case _ => Nil
  }

  /** No rule had anything to say about it. */
  val NoChain = "it is not a chain of joins on one key"
}
