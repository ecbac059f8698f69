package io.github.skewext.facts

import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionSet}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.TreeNodeTag

/**
 * The predicates that rules have added to the inputs of a join. Each is added once: the optimizer may
 * simplify it beyond recognition, and the next run of a rule would add it again, and again.
 */
object AddedPredicates {

  private val tag = TreeNodeTag[Map[Int, ExpressionSet]]("skewext.addedPredicates")

  /** The predicates that were added, by the number of the input. */
  private def of(join: LogicalPlan): Map[Int, ExpressionSet] =
    join.getTagValue(tag).getOrElse(Map.empty)

  def has(join: LogicalPlan, input: Int, predicate: Expression): Boolean =
    of(join).get(input).exists(_.contains(predicate))

  /** Records predicates, beside those that the join has by the tags of its earlier form. */
  def record(join: LogicalPlan, added: Map[Int, Seq[Expression]]): Unit = {
    val before = of(join)
    val now = added.map { case (i, predicates) =>
      i -> ExpressionSet(before.get(i).toSeq.flatten ++ predicates)
    }
    join.setTagValue(tag, before ++ now)
  }

  /** For a join with other inputs: numbers have another meaning. */
  def forget(join: LogicalPlan): Unit = join.unsetTagValue(tag)
}
