package io.github.skewext.optimizer

import io.github.skewext.plan.MultiFullJoin

import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project, Sort}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.{JOIN, SORT}

/**
 * Leaves out the ORDER BY of inputs, as Spark's `EliminateSorts` does below its own joins: views have
 * one, and nothing of it is left in what the join gives. Only sorts of all rows: those of partitions
 * (`sortWithinPartitions`) may be what spares the join to bring rows together by itself. Not below a
 * LIMIT, where the order says which rows there are.
 */
object DropInputSorts extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    plan.transformWithPruning(_.containsAllPatterns(SORT, JOIN)) { case join: MultiFullJoin =>
      join.withInputs(join.children.map(withoutSort))
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
