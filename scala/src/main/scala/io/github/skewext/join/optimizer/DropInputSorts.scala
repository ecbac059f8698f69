package io.github.skewext.join.optimizer

import io.github.skewext.join.UnorderedInputs

import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project, Sort}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.{JOIN, SORT}

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
