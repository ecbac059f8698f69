package io.github.skewext.optimizer

import io.github.skewext.plan.InputRole.Required
import io.github.skewext.plan.{MultiFullJoin, TechniqueHint}

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.LeftSemiOrAnti
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.{JOIN, LEFT_SEMI_OR_ANTI_JOIN}

/**
 * Moves a semi or anti join from above a [[MultiFullJoin]] into a required input that has all that it
 * compares: what it drops need not be shuffled, nor joined. As Spark does with its own inner and left
 * joins.
 * {{{
 * Join LEFT SEMI (v1 = x)                  MultiFullJoin [k]
 * :- MultiFullJoin [k]                     :- Join LEFT SEMI (v1 = x)
 * :  :- a (v1, required)             =>    :  :- a
 * :  +- b (v2, optional)                   :  +- c
 * +- c (x)                                 +- b
 * }}}
 * Of several such inputs the largest takes it.
 */
object PushSemiJoins extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.transformWithPruning(_.containsAllPatterns(JOIN, LEFT_SEMI_OR_ANTI_JOIN)) {
      case semi @ Join(join: MultiFullJoin, right, LeftSemiOrAnti(_), Some(condition), _)
          // A join that a technique is wanted for is done where it is.
          if condition.deterministic && TechniqueHint.of(semi).isEmpty =>
        owner(join, right, condition) match {
          case Some(i) =>
            val over = join.overInput(i, condition)
            val input = semi.copy(left = join.children(i), condition = Some(over))
            join.withInputs(join.children.updated(i, input))
          case None => semi
        }
    }

  private def owner(join: MultiFullJoin, right: LogicalPlan, condition: Expression): Option[Int] = {
    val compared = condition.references -- right.outputSet
    val owners = join.children.indices.filter { i =>
      // Key columns of an input are none of the join's: nobody has looked whether the right has them.
      join.roles(i) == Required && compared.nonEmpty && compared.subsetOf(join.owned(i)) &&
      join.children(i).outputSet.intersect(right.outputSet).isEmpty
    }
    if (owners.isEmpty) None else Some(owners.maxBy(join.children(_).stats.sizeInBytes))
  }
}
