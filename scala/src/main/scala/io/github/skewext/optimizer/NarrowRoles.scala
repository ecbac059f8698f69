package io.github.skewext.optimizer

import io.github.skewext.plan.InputRole.{Excluded, Optional, Required}
import io.github.skewext.plan.MultiFullJoin
import io.github.skewext.plan.PresenceFolding.{neverTrue, whenAbsent, whenPresent}

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.{FILTER, JOIN}

/**
 * Narrows the roles of optional inputs by what is asked of their columns above the join, as Spark
 * makes left and inner joins of outer ones:
 *
 *  - A predicate that cannot be true where all columns of the input are null keeps only keys that
 *    the input has: it is required. `v1 > 5`, `v1 = v2` (of either input), `v1 IS NOT NULL`.
 *  - A predicate that cannot be true where the input has the key keeps only keys that it lacks: it is
 *    excluded, and its columns are null. `v1 IS NULL` of a column that is never null in the input.
 *
 * A row with a null key in another input shows no columns of this one, so it goes with the keys that
 * the input lacks. The indicator shows what it showed: of the rows that pass, all or none have the
 * input.
 */
object NarrowRoles extends Rule[LogicalPlan] with PredicateHelper {

  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.transformWithPruning(_.containsAllPatterns(FILTER, JOIN)) {
      case filter @ Filter(condition, join: MultiFullJoin) if join.roles.contains(Optional) =>
        val asked = splitConjunctivePredicates(condition).filter(_.deterministic)
        // Among the constraints is `v IS NOT NULL` for any comparison of v.
        lazy val known = asked ++ filter.constraints
        val roles = join.roles.indices.map { i =>
          val own = AttributeSet(join.valueColumns(i))
          def readsOwn(p: Expression): Boolean = p.references.exists(own.contains)
          if (join.roles(i) != Optional) join.roles(i)
          else if (known.exists(p => readsOwn(p) && neverTrue(whenAbsent(p, join, i)))) Required
          else if (asked.exists(p => readsOwn(p) && neverTrue(whenPresent(p, join, i)))) Excluded
          else Optional
        }
        if (roles == join.roles) filter
        else if (!roles.exists(_.isShown)) join.empty
        else filter.copy(child = join.withOutputOf(join.withRoles(roles)))
    }
}
