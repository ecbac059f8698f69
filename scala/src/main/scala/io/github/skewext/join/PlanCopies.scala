package io.github.skewext.join

import io.github.skewext.facts.{DropsRecords, StableRows}
import io.github.skewext.inputs.NewIds

import org.apache.spark.sql.catalyst.analysis.DeduplicateRelations
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.OUTER_REFERENCE
import org.apache.spark.sql.execution.columnar.InMemoryRelation

/** Copies of the sides of a join, and unions, for plans that read a side several times. */
private[skewext] object PlanCopies {

  /** Whether a copy has the rows of the plan, if these are stable, and nothing else is observed. */
  def isPossible(plan: LogicalPlan): Boolean =
    !plan.exists(_.isInstanceOf[CollectMetrics]) && !DropsRecords(plan) && !isCounted(plan)

  /** Whether Delta counts the rows of the plan, for the metrics of a MERGE. */
  def isCounted(plan: LogicalPlan): Boolean =
    plan.exists(_.expressions.exists(_.exists(StableRows.isCounterOfDelta)))

  /**
   * A copy of a plan with other attributes, for a plan that contains it twice.
   *
   * @param i the number of the side, for the names of the columns.
   * @return the copy, and a function that maps expressions over the plan to the copy.
   */
  def of(original: LogicalPlan, i: Int): (LogicalPlan, Expression => Expression) = {
    // Spark renews the ids of cached data, but not those in its output ordering, and then fails to
    // find them.
    val unordered = original.transform {
      case cached: InMemoryRelation if cached.outputOrdering.nonEmpty =>
        InMemoryRelation(cached.output, cached.cacheBuilder, Nil, cached.statsOfPlanToCache)
    }
    val hiding = OpaqueSubquery.hideIn(unordered)
    val renewed = DeduplicateRelations(Join(original, hiding, Inner, None, JoinHint.NONE)) match {
      case Join(_, copy, _, _, _) => OpaqueSubquery.showIn(copy)
    }
    // Give the columns new names, too. Spark does not renew the ids of columns that our nodes
    // create. Its optimizer keeps an alias that corrects a name. Without one, the ids of the join
    // would change each time it is planned.
    val (copy, _) = NewIds.withNewIds(renewed, i)
    val columnOf = AttributeMap(original.output.zip(copy.output))
    // A condition also has columns of its subqueries.
    (copy, _.transform { case a: Attribute => columnOf.getOrElse(a, a) })
  }

  /**
   * The rows of all parts, as the given columns.
   *
   * From Spark 4.1 on, a union is valid only if no branch returns a column twice. Spark pushes the
   * projection above the union into the branches, and removes aliases that only change an id, except
   * in the first branch. Where another branch has nulls, `coalesce(a.k, b.k) AS k` is such an alias.
   * So the columns of other branches are expressions, and have new names where these stay below.
   */
  def union(parts: Seq[LogicalPlan], columns: Seq[Attribute]): LogicalPlan = {
    val distinct =
      columns.indices.filter(j => columns.indexWhere(_.exprId == columns(j).exprId) == j)
    val shown = parts.zipWithIndex.map { case (part, i) =>
      val values = distinct.map(j => (part.output(j), columns(j))).map { case (value, column) =>
        def known = if (column.nullable) KnownNullable(value) else KnownNotNull(value)
        if (i > 0) Alias(known, NewIds.newName(column.name, s"part$i"))()
        else if (value.exprId == column.exprId) value
        else {
          Alias(if (value.nullable && !column.nullable) known else value, column.name)(
            exprId = column.exprId,
            explicitMetadata = Some(column.metadata))
        }
      }
      Project(values, part)
    }
    val rows = if (shown.size == 1) shown.head else Union(shown)
    if (distinct.size == columns.size) rows else Project(columns, rows)
  }
}

/**
 * The plan of a subquery, hidden from Spark while it renews the column ids in a copy of the plan
 * around it. If the optimizer has moved the predicates out of a correlated subquery, Spark renews
 * the ids of the subquery's columns, but not those in the predicates. New ids are not needed here,
 * because the plan around the subquery does not return its columns.
 */
private[skewext] case class OpaqueSubquery(plan: LogicalPlan) extends LeafNode {
  override def output: Seq[Attribute] = plan.output
}

private[skewext] object OpaqueSubquery {

  def hideIn(plan: LogicalPlan): LogicalPlan = plan.transformAllExpressions {
    // A subquery that still refers to outer columns needs their new ids.
    case subquery: SubqueryExpression if !subquery.plan.containsPattern(OUTER_REFERENCE) =>
      subquery.withNewPlan(OpaqueSubquery(subquery.plan))
  }

  def showIn(plan: LogicalPlan): LogicalPlan = plan.transformAllExpressions {
    case subquery: SubqueryExpression =>
      subquery.plan match {
        case OpaqueSubquery(hidden) => subquery.withNewPlan(hidden)
        case _ => subquery
      }
  }
}
