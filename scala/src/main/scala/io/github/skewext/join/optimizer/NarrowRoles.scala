package io.github.skewext.join.optimizer

import io.github.skewext.join.InputRole.{Excluded, Optional, Required}
import io.github.skewext.join.MultiFullJoin
import io.github.skewext.join.PresenceFolding.{isFalseWhenAbsent, isFalseWhenPresent}

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LocalRelation, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.{FILTER, JOIN}

/**
 * Narrows the roles of optional inputs by predicates on their columns above the join, as Spark
 * turns outer joins into left and inner joins:
 *
 *  - A predicate that cannot be true if all columns of the input are null keeps only keys that the
 *    input has: the input becomes required. Examples: `v1 > 5`, `v1 = v2` (for both inputs),
 *    `v1 IS NOT NULL`.
 *  - A predicate that cannot be true if the input has the key keeps only keys that it lacks: the
 *    input becomes excluded, and its columns are null. Example: `v1 IS NULL` for a column that is
 *    not nullable in the input.
 *
 * A row with a null key in another input has no columns of this one, so it counts as a key that the
 * input lacks. The indicator does not change: either all or none of the remaining rows have the
 * input.
 *
 * It also removes the columns of hidden inputs that are not key columns. Spark prunes inputs only while
 * a projection is directly above the join.
 */
object NarrowRoles extends Rule[LogicalPlan] with PredicateHelper {

  override def apply(plan: LogicalPlan): LogicalPlan = pruned(narrowed(plan))

  private def pruned(plan: LogicalPlan): LogicalPlan =
    plan.transformWithPruning(_.containsPattern(JOIN)) {
      case join: MultiFullJoin if !join.roles.forall(_.isShown) =>
        val inputs = join.children.indices.map { i =>
          val input = join.children(i)
          lazy val used = AttributeSet(join.keys(i) ++ join.keyColumns(i))
          if (join.roles(i).isShown || input.outputSet.subsetOf(used)) input
          else Project(input.output.filter(used.contains), input)
        }
        join.withNewChildren(inputs)
    }

  private def narrowed(plan: LogicalPlan): LogicalPlan =
    plan.transformWithPruning(_.containsAllPatterns(FILTER, JOIN)) {
      case filter @ Filter(condition, join: MultiFullJoin) if join.roles.contains(Optional) =>
        val asked = splitConjunctivePredicates(condition).filter(_.deterministic)
        // For each comparison of a column v, the constraints contain `v IS NOT NULL`. Those of the
        // inputs say nothing about an input that may be absent.
        lazy val known = asked ++ Filter(condition, LocalRelation(join.output)).constraints
        val roles = join.roles.indices.map { i =>
          val own = AttributeSet(join.valueColumns(i))
          def readsOwn(p: Expression): Boolean = p.references.exists(own.contains)
          if (join.roles(i) != Optional) join.roles(i)
          else if (known.exists(p => readsOwn(p) && isFalseWhenAbsent(p, join, i))) Required
          else if (asked.exists(p => readsOwn(p) && isFalseWhenPresent(p, join, i))) Excluded
          else Optional
        }
        if (roles == join.roles) filter
        else if (!roles.exists(_.isShown)) join.empty
        else filter.copy(child = join.withOutputOf(join.withRoles(roles)))
    }
}
