package io.github.skewext.stable

import org.apache.spark.sql.catalyst.expressions.{Alias, Expression, TaggingExpression}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project}

/**
 * The value of its child, computed only for rows of the plan below. Spark pushes predicates and
 * semi-joins through a projection only if it is deterministic, so this expression says that it is
 * not. The value itself is as stable as its child, see [[StableRows]].
 */
private[skewext] case class KeptInPlace(child: Expression) extends TaggingExpression {

  override lazy val deterministic: Boolean = false

  override protected def withNewChildInternal(newChild: Expression): KeptInPlace =
    copy(child = newChild)
}

private[skewext] object KeptInPlace {

  /**
   * Adds columns for those keys that may fail, or are slow, for rows that the plan drops, see
   * [[SafeToPush]]. Predicates on the returned keys are safe: they are not evaluated below the joins
   * of the plan.
   */
  def keys(plan: LogicalPlan, keys: Seq[Expression]): (LogicalPlan, Seq[Expression]) = {
    val columns = keys.zipWithIndex.map { case (key, i) =>
      if (SafeToDuplicate(key) && SafeToPush(plan, key)) Left(key)
      else Right(Alias(KeptInPlace(key), s"key$i")())
    }
    val added = columns.collect { case Right(alias) => alias }
    if (added.isEmpty) (plan, keys)
    else (Project(plan.output ++ added, plan), columns.map(_.fold(key => key, _.toAttribute)))
  }

  /** Whether the plan is deterministic, apart from values that its upper nodes keep in place. */
  def isDeterministic(plan: LogicalPlan): Boolean = plan.deterministic || (plan match {
    case Project(list, child) =>
      list.forall(_.transform { case KeptInPlace(value) => value }.deterministic) &&
      isDeterministic(child)
    case Filter(condition, child) => condition.deterministic && isDeterministic(child)
    case _ => false
  })
}
