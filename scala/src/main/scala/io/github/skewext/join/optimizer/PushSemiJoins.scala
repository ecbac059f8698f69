package io.github.skewext.join.optimizer

import io.github.skewext.join.InputRole.Required
import io.github.skewext.join.MultiFullJoin
import io.github.skewext.technique.hint.TechniqueHint

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.LeftSemiOrAnti
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.{JOIN, LEFT_SEMI_OR_ANTI_JOIN}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

/**
 * Pushes a semi or anti join above a [[MultiFullJoin]] into a required input with all compared
 * columns, as Spark does with its own inner and left joins. The rows that it drops are then neither
 * shuffled nor joined.
 * {{{
 * Join LEFT SEMI (v1 = x)                  MultiFullJoin [k]
 * :- MultiFullJoin [k]                     :- Join LEFT SEMI (v1 = x)
 * :  :- a (v1, required)             =>    :  :- a
 * :  +- b (v2, optional)                   :  +- c
 * +- c (x)                                 +- b
 * }}}
 * If several inputs qualify, the largest is chosen.
 */
object PushSemiJoins extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.transformWithPruning(_.containsAllPatterns(JOIN, LEFT_SEMI_OR_ANTI_JOIN)) {
      case semi @ Join(join: MultiFullJoin, right, LeftSemiOrAnti(_), Some(condition), _)
          // A join with a technique stays in its place.
          if condition.deterministic &&
            TechniqueHint.of(semi).isEmpty =>
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
      // The output of the multi-way join does not contain the inputs' key columns, so Spark has not
      // checked whether the right side has the same ones.
      join.roles(i) == Required && compared.nonEmpty && compared.subsetOf(join.owned(i)) &&
      join.children(i).outputSet.intersect(right.outputSet).isEmpty &&
      join.mayReadKeys(i, condition)
    }
    // This rule runs before Spark makes scans of tables of DataSource V2. Such a table would plan a scan
    // without filters to know its size.
    val isSizeKnown = !owners.exists(join.children(_).exists(_.isInstanceOf[DataSourceV2Relation]))
    if (owners.size > 1 && isSizeKnown) Some(owners.maxBy(join.children(_).stats.sizeInBytes))
    else owners.headOption
  }
}
