package io.github.skewext.join.optimizer

import io.github.skewext.join.UnorderedInputs

import org.apache.spark.sql.catalyst.expressions.{Expression, IntegerLiteral}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LocalLimit, LogicalPlan, Project, Sort}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.{JOIN, LIMIT, SORT}

/**
 * Removes the ORDER BY of inputs, as Spark's `EliminateSorts` does below its own joins. Views often
 * have one, and the join does not keep the order. Only global sorts are removed: after a
 * `sortWithinPartitions` the join may merge its sorted inputs. A sort below a LIMIT stays, because
 * it determines the rows.
 */
object DropInputSorts extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.transformWithPruning(_.containsAllPatterns(SORT, JOIN)) { case node: UnorderedInputs =>
      node.withNewChildren(node.children.map(withoutSort))
    }

  private def withoutSort(input: LogicalPlan): LogicalPlan = input match {
    case sort: Sort if sort.global => withoutSort(sort.child)
    case project: Project if project.projectList.forall(_.deterministic) =>
      project.withNewChildren(Seq(withoutSort(project.child)))
    case filter: Filter if filter.condition.deterministic =>
      filter.withNewChildren(Seq(withoutSort(filter.child)))
    case _ => input
  }
}

/**
 * Pushes a LIMIT into the required input of a join whose other inputs are optional, and into the
 * spine of a left as-of join, as Spark does for the left side of a left join. The join returns each
 * row of that input at least once, whatever the others contain, so n of its rows are sufficient for
 * `LIMIT n`.
 *
 * The rule does not apply if all inputs are optional. A row that is cut from one input would be
 * missing in rows of the others, and the join has no such rows. Nor does it apply to two required
 * inputs or an excluded one: the remaining rows might be those without a match, or those with one.
 */
object LimitRequiredInput extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.transformWithPruning(_.containsAllPatterns(LIMIT, JOIN)) {
      case limit @ LocalLimit(rows, join: UnorderedInputs) =>
        limited(rows, join).map(j => limit.copy(child = j)).getOrElse(limit)
      case limit @ LocalLimit(rows, project @ Project(_, join: UnorderedInputs)) =>
        limited(rows, join)
          .map(j => limit.copy(child = project.copy(child = j)))
          .getOrElse(limit)
    }

  private def limited(rows: Expression, join: UnorderedInputs): Option[LogicalPlan] =
    join.keptInput.flatMap { i =>
      val input = join.children(i)
      val few = (rows, input.maxRowsPerPartition) match {
        case (IntegerLiteral(n), Some(most)) => most <= n
        case (_, most) => most.isDefined
      }
      if (few) None
      else Some(join.withNewChildren(join.children.updated(i, LocalLimit(rows, input))))
    }
}
