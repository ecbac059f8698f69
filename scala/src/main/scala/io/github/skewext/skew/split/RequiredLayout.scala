package io.github.skewext.skew.split

import io.github.skewext.facts.{BuiltinShuffledJoin, JoinHints}
import io.github.skewext.join.exec.{MultiJoinExec, SpineJoinExec}
import io.github.skewext.skew.plan.SkewReason

import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.adaptive.QueryStageExec
import org.apache.spark.sql.execution.datasources.WriteFilesExec
import org.apache.spark.sql.execution.datasources.v2.MergeRowsExec
import org.apache.spark.sql.execution.exchange._
import org.apache.spark.sql.execution.joins.ShuffledHashJoinExec
import org.apache.spark.sql.execution.{CollectLimitExec, CollectTailExec, SortExec, SparkPlan, TakeOrderedAndProjectExec}
import org.apache.spark.sql.skewext.SparkShims

/**
 * Records the partitioning and order that a query requires of a join, while the plan still shows
 * them. Spark drops a `repartition(k)` or a sort above a join whose output already satisfies it.
 * After that, the plan does not show that an operator relies on it.
 */
object RequiredLayout extends Rule[SparkPlan] {

  /** The requirement of one node on the joins below it: no split, or the order of their rows. */
  private class Requirement(val leftWhole: Option[SkewReason])

  /**
   * @param on requirements on a join. On the nodes above the join, requirements that they pass
   *           through.
   * @param of the requirement of the node on the joins below it
   */
  private case class Layout(on: Seq[Requirement] = Nil, of: Option[Requirement] = None)

  private val tag = TreeNodeTag[Layout]("skewext.layout")

  private def layout(node: SparkPlan): Layout = node.getTagValue(tag).getOrElse(Layout())

  private def demandsOn(node: SparkPlan): Seq[Requirement] = layout(node).on

  private def setDemands(node: SparkPlan, demands: Seq[Requirement]): Unit =
    node.setTagValue(tag, layout(node).copy(on = demands))

  /** The reason why the join must not be split, if there is one. */
  def reasonToLeaveWhole(join: SparkPlan): Option[SkewReason] =
    demandsOn(join).flatMap(_.leftWhole).headOption

  /** Whether the rows of each partition must have the join's output ordering. */
  def isOrderWanted(join: SparkPlan): Boolean = demandsOn(join).exists(_.leftWhole.isEmpty)

  override def apply(plan: SparkPlan): SparkPlan = {
    plan.foreach {
      case shuffle: ShuffleExchangeExec if isRepartition(shuffle) =>
        demand(shuffle, shuffle.child, Some(SkewReason.UserRepartition))
      case write: WriteFilesExec if write.bucketSpec.isDefined =>
        demand(write, write.child, Some(SkewReason.BucketedWrite))
      // If a hint marks the target side of the join, the join can still be split on that side.
      case merge: MergeRowsExec
          if merge.checkCardinality && !merge.exists(JoinHints.forbidsReplication) =>
        demand(merge, merge.child, Some(SkewReason.MergeTarget))
      case barrier if SparkShims.isBarrier(barrier) =>
        barrier.children.foreach { child =>
          demand(barrier, child, Some(SkewReason.BarrierStage), ofAll = true)
        }
      case sort @ SortExec(_, false, child, _) =>
        demand(sort, child, None)
      case _ =>
    }
    plan
  }

  /**
   * Adds the requirement to the first joins below the node, which have their own requirements on
   * the joins below them. A shuffled hash join has none on the order that it passes on. With
   * `ofAll`, adds it to all joins of the stage, because all operators of a stage have the same
   * number of tasks.
   */
  private def demand(
      by: SparkPlan,
      child: SparkPlan,
      leftWhole: Option[SkewReason],
      ofAll: Boolean = false): Unit = {
    val wanted = new Requirement(leftWhole)
    by.setTagValue(tag, layout(by).copy(of = Some(wanted)))
    def mark(node: SparkPlan): Unit = node match {
      case _: Exchange | _: QueryStageExec =>
      case _ =>
        setDemands(node, demandsOn(node) :+ wanted)
        val passesOrder = leftWhole.isEmpty && node.isInstanceOf[ShuffledHashJoinExec]
        if (ofAll || passesOrder || !isJoin(node)) node.children.foreach(mark)
    }
    mark(child)
  }

  /**
   * Removes satisfied requirements after exchanges are planned. A requirement no longer applies to
   * a join if there is an exchange in between, or if the node that has the requirement is still in
   * the plan and so satisfies it itself.
   */
  object AfterExchanges extends Rule[SparkPlan] {
    override def apply(plan: SparkPlan): SparkPlan = {
      visit(plan, above = Set.empty, settled = Set.empty, isShuffled = false)
      plan
    }

    /**
     * @param above what is wanted through the nodes above
     * @param settled what joins below need not give
     * @param isShuffled whether an exchange is above, or a limit that collects the rows
     */
    private def visit(
        node: SparkPlan,
        above: Set[Requirement],
        settled: Set[Requirement],
        isShuffled: Boolean): Unit = {
      if (isJoin(node)) {
        WrittenJoin.setShuffled(node, isShuffled)
        setDemands(node, demandsOn(node).filterNot(settled))
      }
      val through = above ++ demandsOn(node)
      val nowSettled = node match {
        case shuffle: ShuffleExchangeLike if isRepartition(shuffle) =>
          settled ++ through ++ layout(node).of
        case _: Exchange => settled ++ through
        case _: SortExec => settled ++ layout(node).of
        case _ => settled
      }
      // The rows below a limit reach a reader through one task, or the driver.
      val shuffledBelow = isShuffled || (node match {
        case _: Exchange | _: CollectLimitExec | _: CollectTailExec |
            _: TakeOrderedAndProjectExec =>
          true
        case _ => false
      })
      node.children.foreach(visit(_, through, nowSettled, shuffledBelow))
    }
  }

  private def isJoin(plan: SparkPlan): Boolean = plan match {
    case _: MultiJoinExec | _: SpineJoinExec | BuiltinShuffledJoin(_) => true
    case _ => false
  }

  private def isRepartition(shuffle: ShuffleExchangeLike): Boolean =
    shuffle.outputPartitioning.isInstanceOf[HashPartitioning] &&
      (shuffle.shuffleOrigin == REPARTITION_BY_COL || shuffle.shuffleOrigin == REPARTITION_BY_NUM)
}
