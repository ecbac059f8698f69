package io.github.skewext.asof

import io.github.skewext.inputs.HintedInputs
import io.github.skewext.join.JoinOrigin

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LocalLimit, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.JOIN

/**
 * Merges an as-of join whose spine is an as-of join by the same key and time. The spine is shuffled
 * once then:
 * {{{
 * MultiAsOfJoin [k] at t                  Project
 * :- Project                              +- MultiAsOfJoin [k] at t
 * :  +- MultiAsOfJoin [k] at t        =>     :- spine (k, t)
 * :     :- spine (k, t)                      :- prices
 * :     +- prices                            +- clicks
 * +- clicks
 * }}}
 */
object MergeAsOfJoins extends Rule[LogicalPlan] with AliasHelper {

  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.transformUpWithPruning(_.containsPattern(JOIN)) { case upper: MultiAsOfJoin =>
      withoutLimit(upper.spine) match {
        case lower: MultiAsOfJoin => merged(upper, lower.output, lower).getOrElse(upper)
        case Project(list, lower: MultiAsOfJoin) if list.forall(_.deterministic) =>
          merged(upper, list, lower).getOrElse(upper)
        case _ => upper
      }
    }

  /** A limit that is the lower join's spine's, too: see `LimitRequiredInput`. */
  private def withoutLimit(spine: LogicalPlan): LogicalPlan = spine match {
    case LocalLimit(_, below) => below
    case other => other
  }

  /** @param list the columns of the upper join's spine, computed from the lower join */
  private def merged(
      upper: MultiAsOfJoin,
      list: Seq[NamedExpression],
      lower: MultiAsOfJoin): Option[LogicalPlan] = {
    val aliases = getAliasMap(list)
    def below(e: Expression) = replaceAlias(e, aliases)
    val within = upper.within.map(_.map(below))
    val versions = upper.children.tail
    val isSame = upper.inner == lower.inner &&
      compareSame(upper, below, lower) &&
      areSeparate(versions, within, lower) &&
      // Such a subquery must have other columns than the versions.
      !list.exists(SubqueryExpression.hasCorrelatedSubquery)
    if (isSame) {
      val both = lower.copy(
        children = lower.children ++ versions,
        keys = lower.keys ++ upper.keys.tail,
        times = lower.times ++ upper.times.tail,
        matches = lower.matches ++ upper.matches,
        ties = lower.ties ++ upper.ties,
        within = lower.within ++ within,
        hints = HintedInputs.hints(
          lower.children.indices.map(lower.hint) ++ upper.children.indices.tail.map(upper.hint)))
      both.copyTagsFrom(lower)
      for {
        _ <- JoinOrigin.rewrittenFrom(upper)
        joins <- JoinOrigin.rewrittenFrom(lower)
      } JoinOrigin.set(both, JoinOrigin.Rewritten(if (joins.endsWith("s")) joins else s"${joins}s"))
      Some(Project(list ++ both.output.takeRight(versions.map(_.output.size).sum), both))
    } else {
      None
    }
  }

  /** Whether both joins compare the same keys and time of the spine. */
  private def compareSame(
      upper: MultiAsOfJoin,
      below: Expression => Expression,
      lower: MultiAsOfJoin): Boolean = {
    val (keys, others) = (upper.keys.head.map(below), lower.keys.head)
    keys.size == others.size &&
    keys.zip(others).forall { case (a, b) => a.semanticEquals(b) } &&
    below(upper.times.head).semanticEquals(lower.times.head)
  }

  /** Whether the versions have columns of their own, and their conditions concern only the spine. */
  private def areSeparate(
      versions: Seq[LogicalPlan],
      within: Seq[Seq[Expression]],
      lower: MultiAsOfJoin): Boolean = {
    val ids = AttributeSet(lower.children.flatMap(_.output))
    !versions.exists(_.outputSet.exists(ids.contains)) &&
    within.zip(versions).forall { case (on, table) =>
      on.forall(c => (c.references -- table.outputSet).subsetOf(lower.spine.outputSet))
    }
  }
}
