package io.github.skewext.optimizer

import io.github.skewext.plan.{AskedOfEach, MultiFullJoin}

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.{FILTER, JOIN, OUTER_REFERENCE}

/**
 * Moves predicates from above a [[MultiFullJoin]] into its inputs, where they skip files, row groups
 * and buckets. Those on key columns go into every input, those on columns of a required input into
 * that one:
 * {{{
 * Filter (k = 5 AND v1 > 1 AND v2 > 1)     Filter (v2 > 1)
 * +- MultiFullJoin [k]               =>    +- MultiFullJoin [k]
 *    :- a (v1, required)                      :- Filter (k = 5 AND v1 > 1)
 *    +- b (v2, optional)                      :  +- a
 *                                             +- Filter (k = 5)
 *                                                +- b
 * }}}
 * A key that comes out is that of some input, and all inputs that have it agree on it, so nothing is
 * left to check above. That needs keys of which equal ones are identical: a predicate can tell -0.0
 * from 0.0, so keys with floating-point numbers and padded ones stay.
 *
 * A predicate with a subquery goes into one required input, but not into all inputs: it would be
 * planned in each. Nor does one with a user's function, which would be called by each.
 *
 * Of a disjunction that stays above, what follows from it for an input is asked of that as well:
 * `k = 1 AND v2 > 1 OR k = 3 AND v2 < 1` gives `k = 1 OR k = 3`.
 */
object PushKeyPredicates extends Rule[LogicalPlan] with PredicateHelper {

  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.transformWithPruning(_.containsAllPatterns(FILTER, JOIN)) {
      case filter @ Filter(condition, join: MultiFullJoin) =>
        val (candidates, fixed) = splitConjunctivePredicates(condition).partition(movable)
        val (onKeys, others) = candidates.partition { p =>
          isOn(p, join.exactKeyOutput) && isPlannedOnce(p) && AskedOfEach(p)
        }
        val owners = others.map(p => p -> join.children.indices.find(i => isOn(p, join.owned(i))))
        val stay = owners.collect { case (p, None) => p }
        val children = join.children.indices.map { i =>
          val own = owners.collect { case (p, Some(`i`)) => p }
          val predicates = (onKeys ++ own).map(join.overInput(i, _))
          predicates.reduceOption(And).map(Filter(_, join.children(i))).getOrElse(join.children(i))
        }
        val below = join.withInputs(children).withFilters(implied(join, _, stay))
        val kept = fixed ++ stay
        if (below eq join) filter
        else if (kept.isEmpty) below
        else filter.copy(condition = kept.reduce(And), child = below)
    }

  /** What a subquery's own plan says of the rows around it cannot be said of other attributes. */
  private def movable(predicate: Expression): Boolean =
    predicate.deterministic && predicate.references.nonEmpty && !predicate.exists {
      case s: SubqueryExpression => s.plan.containsPattern(OUTER_REFERENCE)
      case _ => false
    }

  /** A subquery in every input would be planned as often; but one that gives a value is run once. */
  private def isPlannedOnce(predicate: Expression): Boolean = !predicate.exists {
    case s: ScalarSubquery => s.isCorrelated
    case _: SubqueryExpression => true
    case _ => false
  }

  private def isOn(predicate: Expression, columns: AttributeSet): Boolean =
    predicate.references.subsetOf(columns)

  private def implied(join: MultiFullJoin, i: Int, stay: Seq[Expression]): Seq[Expression] = {
    val columns = join.exactKeyOutput ++ join.owned(i)
    stay
      .filter(isPlannedOnce)
      .flatMap(extractPredicatesWithinOutputSet(_, columns))
      .flatMap(splitConjunctivePredicates)
      .filter(p => p.references.nonEmpty && AskedOfEach(p))
  }
}
