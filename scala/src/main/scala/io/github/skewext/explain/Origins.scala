package io.github.skewext.explain

import io.github.skewext.join.{JoinOrigin, MultiFullJoin}
import io.github.skewext.platform.{Guard, Linkage, LogicalJoinRules, Reason, RuleName, SkewConf}
import io.github.skewext.rewrite.{RewriteJoinChains, RewriteReason}
import io.github.skewext.technique.hint.TechniqueHint
import io.github.skewext.technique.{PlanSkewJoins, TechniqueReason}

import org.apache.spark.sql.catalyst.plans.LeftExistence
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Join, LogicalPlan, Project}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage
import org.apache.spark.sql.internal.SQLConf

/** The reasons for the plans of joins, read from the tags that our rules leave on nodes. */
private[skewext] object Origins {

  def ofMultiJoin(join: Option[LogicalPlan]): Origin =
    ofRewritten(join.flatMap(JoinOrigin.rewrittenFrom(_)))

  /** The origin of an operator that the optimizer or the planner may have rewritten. */
  def ofOperator(logical: Option[LogicalPlan], plan: SparkPlan): Origin =
    ofRewritten((logical ++ Some(plan)).flatMap(JoinOrigin.rewrittenFrom(_)).headOption)

  private def ofRewritten(before: Option[String]): Origin = before match {
    case Some(what) => Origin(Origin.Rewritten, s"$what became one operator")
    case None => Origin(Origin.AskedFor, "one operator")
  }

  /** The origin of a multi-way join that runs as Spark's broadcast joins. */
  def ofBroadcast(join: MultiFullJoin): Origin = {
    val origin = ofMultiJoin(Some(join))
    val before = JoinOrigin.rewrittenFrom(join).fold("")(joins => s"$joins became one join, and ")
    origin.copy(text = s"${before}all inputs but one are small or have a broadcast hint, so " +
      "Spark's broadcast joins do it and nothing is shuffled")
  }

  /**
   * The origin of Spark's joins with split partitions: first the split, then the reason against a
   * rewrite, unless that is only the number of inputs.
   */
  def ofSplit(origin: Origin): Origin = {
    val split = "several tasks share its skewed partitions"
    if (origin.isShort && origin.concerns) Origin(Origin.Split, split)
    else origin.copy(status = Origin.Split, text = s"$split; ${origin.status}: ${origin.text}")
  }

  /**
   * The origin of Spark's joins, the topmost first.
   *
   * @param off the reason why no join can be rewritten, if there is one.
   * @param plansAgain whether to run the rewrite again for a join that lost its reason.
   */
  def ofSparks(joins: Seq[LogicalPlan], off: Option[String], plansAgain: Boolean): Origin =
    byTechnique(joins).getOrElse(ofChain(joins, off, plansAgain))

  /** The origin of joins for which `skew_join` or its hint requests a technique. */
  private def byTechnique(joins: Seq[LogicalPlan]): Option[Origin] = {
    val contents = joins.flatMap(TechniqueHint.of(_))
    val origins = contents.distinct.map {
      case TechniqueHint.Made(technique, _, how, _) =>
        Origin(Origin.AskedFor, s"skew_join by $technique: $how")
      case TechniqueHint.OfOrJoin(join, Seq(left, right)) =>
        Origin(
          Origin.Rewritten,
          s"$join became joins on equal keys; reads of the left side: $left, of the right side: $right")
      case TechniqueHint.OfRanges(form, number) =>
        Origin(
          Origin.Rewritten,
          s"range join ($form) became a join on equal keys: the numbers of up to $number ranges of " +
            "values. Each row is in the ranges that it touches; keys with many rows are searched by " +
            "range")
      case TechniqueHint.Refused(technique, Reason.Detailed(reason, detail)) =>
        refused(technique, reason, detail)
      // The only joins that Spark creates after it has run PlanSkewJoins.
      case TechniqueHint.Wanted(technique, _, _, _, _)
          if plansTechniques(SQLConf.get) && joins.exists(mayBeSubquery) =>
        refused(technique, TechniqueReason.Subquery, None)
      case TechniqueHint.Wanted(technique, _, _, _, _) =>
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

  private def refused(technique: String, reason: Reason, detail: Option[String]): Origin = Origin(
    Origin.LeftAlone,
    s"skew_join by $technique is Spark's own join: ${reason.text}",
    detail,
    Some(reason.advice))

  private def mayBeSubquery(plan: LogicalPlan): Boolean = plan match {
    case Join(_, _, LeftExistence(_), _, _) => true
    case _ => false
  }

  private def plansTechniques(conf: SQLConf): Boolean =
    SkewConf.enabled(conf) && !isExcluded(conf, PlanSkewJoins.ruleName)

  private def ofChain(joins: Seq[LogicalPlan], off: Option[String], plansAgain: Boolean): Origin = {
    val lowered = joins.flatMap(JoinOrigin.of(_)).collectFirst {
      case JoinOrigin.Lowered(description) => description
    }
    val given = if (off.isEmpty && lowered.isEmpty) reasons(joins, plansAgain) else Nil
    (lowered, given) match {
      case (Some(description), _) =>
        Origin(
          Origin.SwitchedOff,
          s"asked for as one join, and planned as Spark's as ${SkewConf.ENABLED.key} is false",
          Some(description))
      case (None, Seq(one)) =>
        Origin(
          Origin.LeftAlone,
          one.reason.text,
          one.detail,
          Some(one.reason.advice),
          isShort = one.reason == RewriteReason.TwoInputs)
      // Several chains, each with its own reason.
      case (None, several) if several.nonEmpty =>
        Origin(
          Origin.LeftAlone,
          several.map(_.text).mkString("; "),
          advice = Some(several.map(g => g.reason.advice).distinct.mkString(" ")))
      case _ =>
        val none = "it is not a chain of joins on one key"
        off.fold(Origin(Origin.LeftAlone, none, concerns = false, isShort = true))(
          Origin(Origin.LeftAlone, _))
    }
  }

  /**
   * The reasons of the joins. A join loses its reason if a rule of Spark replaces it by a new join.
   * Then the rewrite runs again, which refuses the same join for the same reason.
   */
  private def reasons(joins: Seq[LogicalPlan], plansAgain: Boolean): Seq[RewriteReason.Detailed] = {
    val kept = joins.flatMap(RewriteReason.of(_))
    val without = joins.headOption.filter(top =>
      plansAgain && RewriteReason.of(top).isEmpty &&
        !isExcluded(SQLConf.get, RewriteJoinChains.ruleName))
    val lost = without.toSeq.flatMap { top =>
      Guard.protect("looking for the reason of a join", Seq.empty[RewriteReason.Detailed]) {
        following(RewriteJoinChains.withReasons(withoutStages(top))).flatMap(RewriteReason.of(_))
      }
    }
    val all = (lost ++ kept).distinct
    // A join is part of a short chain because the join above could not be added to it, so that
    // reason counts.
    val others = all.filterNot(_.reason == RewriteReason.TwoInputs)
    if (all.nonEmpty && joins.headOption.exists(inputsOf(_) == 2)) {
      // Without its other obstacles, two inputs would not be rewritten either.
      Seq(RewriteReason.TwoInputs.given)
    } else if (others.isEmpty) {
      all.take(1)
    } else {
      others
    }
  }

  /** The inputs of the consecutive joins from this node down. */
  private def inputsOf(plan: LogicalPlan): Int = plan match {
    case _: Join | _: MultiFullJoin | _: Project | _: Filter => plan.children.map(inputsOf).sum
    case stage: LogicalQueryStage => inputsOf(stage.logicalPlan)
    case _ => 1
  }

  private def isExcluded(conf: SQLConf, rule: String): Boolean =
    SkewConf.excludes(conf, rule) || RuleName.isIn(LogicalJoinRules.excluded(conf), rule)

  /** The reason why a rule does not run, if it is excluded or does not fit this Spark. */
  def whyExcluded(conf: SQLConf, rule: String): Option[String] =
    Linkage.faultOf(rule).map(misfit).orElse {
      if (isExcluded(conf, rule)) {
        Some(s"the rule ${rule.split('.').last} is excluded by a setting")
      } else {
        None
      }
    }

  def misfit(fault: String): String = s"its classes do not fit this Spark: $fault"

  /** A copy of the query without the stages that adaptive execution has put into it. */
  def withoutStages(plan: LogicalPlan): LogicalPlan = plan.clone().transformUp {
    case stage: LogicalQueryStage => withoutStages(stage.logicalPlan)
  }

  /** The consecutive joins from this node down. */
  private def following(plan: LogicalPlan): Seq[LogicalPlan] = plan match {
    case join: Join => join +: join.children.flatMap(following)
    case _: Project | _: Filter => plan.children.flatMap(following)
    case _ => Nil
  }
}
