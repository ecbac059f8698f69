package io.github.skewext.plan

import org.apache.spark.sql.catalyst.expressions.{Alias, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan

/** A join whose tasks write files: no node between it and the write shuffles its rows. */
object WrittenJoin {

  private val tag = TreeNodeTag[Unit]("skewext.written")

  /** Whether the operator implements such a join. */
  def isOne(join: SparkPlan): Boolean = join.logicalLink.exists(_.getTagValue(tag).isDefined)

  /**
   * Marks the joins whose tasks return the rows of the plan, as far as the logical plan shows that.
   */
  def mark(written: LogicalPlan): Unit = mark(written, None)

  /** @param keys the keys of a join above in the same tasks, if there is one. */
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

  /**
   * Marks the join, unless a join above has another key, because then its rows are shuffled in
   * between.
   */
  private def markJoin(
      join: LogicalPlan,
      compared: AttributeSet,
      keys: Option[AttributeSet]): Unit =
    if (keys.forall(_.intersect(compared).nonEmpty)) {
      join.setTagValue(tag, ())
      join.children.foreach(mark(_, Some(compared)))
    }

  /**
   * Whether the rows of the node's child stay in their task. Below a MERGE no join is marked,
   * because a straggler is worse there than another file.
   */
  private def staysInTask(node: LogicalPlan): Boolean = node match {
    case _: RepartitionOperation | _: RebalancePartitions | _: Aggregate | _: Distinct |
        _: Deduplicate | _: Window | _: GlobalLimit | _: Offset | _: MergeRows =>
      false
    case sort: Sort => !sort.global
    case _: UnaryNode | _: Union => true
    case _ => false
  }
}
