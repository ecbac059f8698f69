package io.github.skewext.technique

import io.github.skewext.facts.KeptInPlace
import io.github.skewext.join.PlanCopies

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildSide}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan, Project}

/**
 * A copy of a side of a join with other attributes, for plans that read a side several times.
 *
 * @param plan the rows, with columns for keys that are kept in place, see [[KeptInPlace]].
 * @param columns the columns of the side, in its order. They are the first ones of the plan.
 * @param over maps expressions over the side to the copy.
 */
private[technique] case class SideCopy(
    request: TechniqueRequest,
    side: BuildSide,
    plan: LogicalPlan,
    columns: Seq[Attribute],
    over: Expression => Expression,
    keys: Seq[Expression]) {

  /** Rows of this side without a match, as rows of the join. */
  def unmatched(rows: LogicalPlan): LogicalPlan = {
    val ofSide = request.plan(side).outputSet
    val values = request.join.output.map { a =>
      Alias(if (ofSide.contains(a)) over(a) else Literal.create(null, a.dataType), a.name)()
    }
    Project(values, rows)
  }

  /** The keys of rows of this side as columns. */
  def keysOf(rows: LogicalPlan): Project =
    Project(keys.zipWithIndex.map { case (key, i) => Alias(key, s"key$i")() }, rows)
}

private[technique] object SideCopy {

  def of(request: TechniqueRequest, side: BuildSide): SideCopy = {
    val (rows, over) = PlanCopies.of(request.plan(side), if (side == BuildLeft) 0 else 1)
    val (plan, keys) = KeptInPlace.keys(rows, request.keys(side).map(over))
    SideCopy(request, side, plan, rows.output, over, keys)
  }

  def distinct(keys: LogicalPlan): LogicalPlan = Aggregate(keys.output, keys.output, keys)
}
