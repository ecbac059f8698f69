package io.github.skewext.explain

import io.github.skewext.disjunction.{OrJoinReason, RewriteOrJoins}
import io.github.skewext.platform.Guard

import org.apache.spark.sql.catalyst.plans.logical.Join

/** Joins with OR for which Spark compares all pairs of rows, and why. */
private[explain] object ExplainedOrJoins {

  /**
   * The origin of consecutive joins, with the reason of a join with OR among them.
   *
   * @param off the reason why skewext changes no join, if there is one.
   */
  def in(found: PlannedJoin, off: Option[String], origin: Origin): Origin = {
    val reason =
      if (off.isDefined || JoinOutlines.asksForTechnique(found)) None else reasonIn(found)
    reason.fold(origin) { given =>
      if (origin.status == Origin.Replaced) {
        origin.copy(text = s"${origin.text}; another one compares all pairs: ${given.text}")
      } else {
        Origin(Origin.LeftAlone, given.reason.text, given.detail, Some(given.reason.advice))
      }
    }
  }

  private def reasonIn(found: PlannedJoin): Option[OrJoinReason.Detailed] =
    found.joins.flatMap {
      case ExplainedRanges.AllPairs(join) =>
        // Spark makes joins of EXISTS after the rule, without the reason.
        OrJoinReason.of(join).orElse {
          Guard.protect(
            "looking for the reason of a join with OR",
            Option.empty[OrJoinReason.Detailed]) {
            RewriteOrJoins.whyNot(Origins.withoutStages(join).asInstanceOf[Join])
          }
        }
      case _ => None
    }.headOption
}
