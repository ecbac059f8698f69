package io.github.skewext.facts

import org.apache.spark.sql.catalyst.expressions._
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
    val kept = keys.filterNot(key => SafeToDuplicate(key) && SafeToPush(plan, key))
    val (below, columns) = all(plan, kept)
    val columnOf = kept.zip(columns).toMap
    (below, keys.map(key => columnOf.getOrElse(key, key)))
  }

  /** Adds a column for each key. */
  def all(plan: LogicalPlan, keys: Seq[Expression]): (LogicalPlan, Seq[Expression]) = {
    val added = keys.zipWithIndex.map { case (key, i) => Alias(KeptInPlace(key), s"key$i")() }
    (if (added.isEmpty) plan else Project(plan.output ++ added, plan), added.map(_.toAttribute))
  }

  /**
   * The rows with which the predicates are true. Those on keys that a user-defined function computes
   * stay above the function, which Spark would otherwise call once more.
   */
  def filtered(
      plan: LogicalPlan,
      predicates: Seq[Expression],
      keys: Seq[Attribute]): LogicalPlan = {
    val read = AttributeSet.fromAttributeSets(predicates.map(_.references))
    val computed = AttributeSet(keys.filter { key =>
      read.contains(key) && ComputedBelow.isExpensive(plan, AttributeSet(key))
    })
    val (above, below) = predicates.partition(_.references.exists(computed.contains))
    val filtered = below.reduceOption(And).fold(plan)(Filter(_, plan))
    above.reduceOption(And).fold(filtered) { condition =>
      val columns = computed.toSeq
      val (withKept, kept) = all(filtered, columns)
      val keptOf = AttributeMap(columns.zip(kept))
      val onKept = condition.transform { case a: Attribute => keptOf.getOrElse(a, a) }
      Project(plan.output, Filter(onKept, withKept))
    }
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
