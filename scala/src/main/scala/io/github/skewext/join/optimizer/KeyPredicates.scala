package io.github.skewext.join.optimizer

import io.github.skewext.facts.SafeToDuplicate
import io.github.skewext.join.InputRole.Required
import io.github.skewext.join.{InputRole, MultiFullJoin}

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.{FILTER, JOIN, OUTER_REFERENCE}

/**
 * Pushes predicates above a [[MultiFullJoin]] into its inputs, where they skip files, row groups
 * and buckets. Predicates on key columns go into every input, and those on columns of a required
 * input into that input:
 * {{{
 * Filter (k = 5 AND v1 > 1 AND v2 > 1)     Filter (v2 > 1)
 * +- MultiFullJoin [k]               =>    +- MultiFullJoin [k]
 *    :- a (v1, required)                      :- Filter (k = 5 AND v1 > 1)
 *    +- b (v2, optional)                      :  +- a
 *                                             +- Filter (k = 5)
 *                                                +- b
 * }}}
 * Each key of the result is a key of some input, and all inputs with this key have the same value.
 * So the predicate on the key is not evaluated above. This requires that equal keys are identical.
 * A predicate can distinguish -0.0 and 0.0, so predicates on floating-point keys stay, as do those
 * on padded keys.
 *
 * A predicate with a subquery goes into one required input, but not into all inputs, because each
 * would plan the subquery. Nor does a predicate with a user-defined function, because each input
 * would call it. In an input whose key such a function computes, the predicate stays above it. Nor does one that may fail, because it would be evaluated for keys that other
 * inputs or predicates drop: `va > 0 AND 100 / k > 5` in ANSI mode. If only the key of one input may
 * fail, because of a cast below its own joins, the predicate stays above, and goes into the others.
 *
 * If a disjunction stays above, the predicates that it implies for an input are added to that
 * input: `k = 1 AND v2 > 1 OR k = 3 AND v2 < 1` gives `k = 1 OR k = 3`.
 */
object PushKeyPredicates extends Rule[LogicalPlan] with PredicateHelper {

  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.transformWithPruning(_.containsAllPatterns(FILTER, JOIN)) {
      case filter @ Filter(condition, join: MultiFullJoin) =>
        val (candidates, fixed) = splitConjunctivePredicates(condition).partition(movable)
        val (onKeys, others) = candidates.partition { p =>
          isOn(p, join.exactKeyOutput) && isPlannedOnce(p) && SafeToDuplicate(p) &&
          join.children.indices.forall(join.mayFilter(_, p))
        }
        val owners = others.map { p =>
          p -> join.children.indices.find { i =>
            isOn(p, join.owned(i)) && join.mayReadKeys(i, p) && isApart(p, join.children(i))
          }
        }
        val stay = owners.collect { case (p, None) => p }
        val children = join.children.indices.map { i =>
          val own = owners.collect { case (p, Some(`i`)) => p }
          join.filtered(i, onKeys ++ own)
        }
        val below = join.withInputs(children).withFilters(implied(join, _, stay))
        val kept = fixed ++ stay
        if (below eq join) filter
        else if (kept.isEmpty) below
        else filter.copy(condition = kept.reduce(And), child = below)
    }

  /**
   * Whether the predicate can be translated to other attributes. A predicate with a correlated
   * subquery cannot: the plan of the subquery refers to attributes of the join.
   */
  private def movable(predicate: Expression): Boolean =
    predicate.deterministic && predicate.references.nonEmpty && !predicate.exists {
      case s: SubqueryExpression => s.plan.containsPattern(OUTER_REFERENCE)
      case _ => false
    }

  /**
   * Whether subqueries run once if the predicate is in every input. Only a scalar subquery that is
   * not correlated does; each input would plan the others.
   */
  private def isPlannedOnce(predicate: Expression): Boolean = !predicate.exists {
    case s: ScalarSubquery => s.isCorrelated
    case _: SubqueryExpression => true
    case _ => false
  }

  /**
   * Whether the plans of subqueries have other columns than the input. On Spark 3.5 both may have one
   * alias of a view: above the join the input's key is hidden, and Spark sees no conflict.
   */
  private def isApart(predicate: Expression, input: LogicalPlan): Boolean = !predicate.exists {
    case s: SubqueryExpression => s.plan.outputSet.intersect(input.outputSet).nonEmpty
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
      .filter(p => p.references.nonEmpty && SafeToDuplicate(p))
  }
}

/**
 * Adds predicates on the keys of a required input to the other inputs, as Spark does for inner and
 * left joins. The join does not return keys that the required input lacks, nor rows with a null key
 * of other inputs. In `multi_join(a.where("k > 5"), b, how="left")`, b is also filtered by `k > 5`.
 */
object InferKeyPredicates extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = if (conf.constraintPropagationEnabled) {
    plan.transformUpWithPruning(_.containsPattern(JOIN)) {
      case join: MultiFullJoin if join.roles.contains(Required) =>
        // The constraints of the join are over its output. Those on keys are from required inputs.
        val known = join.constraints.toSeq.filter { c =>
          c.references.subsetOf(join.exactKeyOutput) && !SubqueryExpression.hasSubquery(c) &&
          SafeToDuplicate(c)
        }
        join.withFilters(_ => known)
    }
  } else {
    plan
  }
}

/**
 * Filters rows with a null key before the shuffle, if the roles imply that the join does not return
 * them: in every input of an inner join, and in all but the first of a left join.
 */
object FilterNullKeys extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.transformUpWithPruning(_.containsPattern(JOIN)) { case join: MultiFullJoin =>
      join.withFilters { i =>
        if (InputRole.emitsNullKeys(join.roles, i)) Nil
        else
          join.keyOutput.indices
            .filter(join.keys(i)(_).nullable)
            .map(j => IsNotNull(join.keyOutput(j)))
      }
    }
}
