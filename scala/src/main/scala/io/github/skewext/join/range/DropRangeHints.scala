package io.github.skewext.join.range

import java.util.Locale

import io.github.skewext.platform.RunsIfDisabled

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnresolvedHint}
import org.apache.spark.sql.catalyst.rules.Rule

/**
 * Drops hints of Databricks' range join: `RANGE_JOIN(t, 100)`, with the width of its bins. Spark would
 * log a warning that it does not know the hint. Range joins of skewext have no bins.
 */
object DropRangeHints extends Rule[LogicalPlan] with RunsIfDisabled {

  private val Name = "RANGE_JOIN"

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case hint: UnresolvedHint if isOurs(hint) => hint.child
  }

  /** The hints in a query that is not analyzed. */
  private[skewext] def in(query: LogicalPlan): Seq[String] =
    query.collectWithSubqueries {
      case hint: UnresolvedHint if isOurs(hint) => textOf(hint)
    }.distinct

  private def isOurs(hint: UnresolvedHint): Boolean =
    hint.name.toUpperCase(Locale.ROOT) == Name

  private def textOf(hint: UnresolvedHint): String =
    hint.parameters.mkString(s"$Name(", ", ", ")").replace("'", "")
}
