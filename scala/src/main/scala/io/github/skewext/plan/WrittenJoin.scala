package io.github.skewext.plan

import org.apache.spark.sql.catalyst.expressions.{Alias, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan

/** A join whose tasks write files: nothing that shuffles its rows is between it and a write. */
object WrittenJoin {

  private val tag = TreeNodeTag[Unit]("skewext.written")

  /** Of the operator that it was planned as. */
  def isOne(join: SparkPlan): Boolean = join.logicalLink.exists(_.getTagValue(tag).isDefined)

  /** Joins of which rows of the plan are made, task by task, as far as the query says. */
  def mark(written: LogicalPlan): Unit = mark(written, None)

  /** @param keys by which a join above, in the same tasks, would have the rows */
  private def mark(plan: LogicalPlan, keys: Option[AttributeSet]): Unit = plan match {
    case join: Join =>
      markJoin(join, AttributeSet.fromAttributeSets(join.condition.map(_.references)), keys)
    case join: MultiFullJoin =>
      val compared = AttributeSet.fromAttributeSets(join.keys.flatten.map(_.references))
      markJoin(join, compared ++ AttributeSet(join.keyOutput), keys)
    case Project(list, child) =>
      mark(
        child,
        keys.map { wanted =>
          val computed = list.collect { case a: Alias if wanted.contains(a.toAttribute) => a }
          wanted ++ AttributeSet.fromAttributeSets(computed.map(_.references))
        })
    case node if staysInTask(node) => node.children.foreach(mark(_, keys))
    case _ =>
  }

  /** Below a join by another key rows are shuffled. */
  private def markJoin(
      join: LogicalPlan,
      compared: AttributeSet,
      keys: Option[AttributeSet]): Unit =
    if (keys.forall(_.intersect(compared).nonEmpty)) {
      join.setTagValue(tag, ())
      join.children.foreach(mark(_, Some(compared)))
    }

  /** What a MERGE does to joined rows is in between, and there a straggler is worse than a file more. */
  private def staysInTask(node: LogicalPlan): Boolean = node match {
    case _: RepartitionOperation | _: RebalancePartitions | _: Aggregate | _: Distinct |
        _: Deduplicate | _: Window | _: GlobalLimit | _: Offset | _: MergeRows =>
      false
    case sort: Sort => !sort.global
    case _: UnaryNode | _: Union => true
    case _ => false
  }
}
