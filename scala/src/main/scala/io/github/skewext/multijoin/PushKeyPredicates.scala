package io.github.skewext.multijoin

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule

/**
 * Moves predicates on key columns from above a [[MultiFullJoin]] into every input, where they skip
 * files, row groups and buckets:
 * {{{
 * Filter (k = 5 AND x > 1)             Filter (x > 1)
 * +- MultiFullJoin [k]           =>    +- MultiFullJoin [k]
 *    :- a                                 :- Filter (k = 5)
 *    +- b                                 :  +- a
 *                                         +- Filter (k = 5)
 *                                            +- b
 * }}}
 * A key that comes out is that of some input, and all inputs that have it agree on it, so nothing is
 * left to check above. That needs keys of which equal ones are identical: a predicate can tell -0.0
 * from 0.0, so keys with floating-point numbers and padded ones stay.
 */
object PushKeyPredicates extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformUp {
    case filter @ Filter(condition, join: MultiFullJoin) =>
      val movable = AttributeSet(
        join.keyOutput.indices
          .filter(j => join.keys.forall(input => JoinKeys.comparedByBytes(input(j))))
          .map(join.keyOutput))
      val (pushed, kept) = splitConjunctivePredicates(condition).partition { predicate =>
        predicate.deterministic && predicate.references.nonEmpty &&
        predicate.references.subsetOf(movable) && !SubqueryExpression.hasSubquery(predicate)
      }
      if (pushed.isEmpty) {
        filter
      } else {
        val predicate = pushed.reduce(And)
        val children = join.children.zip(join.keyColumns).map { case (child, columns) =>
          val columnOf = AttributeMap(join.keyOutput.zip(columns))
          Filter(predicate.transform { case a: Attribute => columnOf.getOrElse(a, a) }, child)
        }
        val below = join.copy(children = children)
        if (kept.isEmpty) below else Filter(kept.reduce(And), below)
      }
  }

  private def splitConjunctivePredicates(condition: Expression): Seq[Expression] = condition match {
    case And(left, right) => splitConjunctivePredicates(left) ++ splitConjunctivePredicates(right)
    case other => Seq(other)
  }
}
