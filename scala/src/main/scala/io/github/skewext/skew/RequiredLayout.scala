package io.github.skewext.skew

import io.github.skewext.execution.{MultiJoinExec, SparksShuffledJoin}
import io.github.skewext.plan.{JoinHints, SkewReason}

import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.adaptive.QueryStageExec
import org.apache.spark.sql.execution.datasources.WriteFilesExec
import org.apache.spark.sql.execution.datasources.v2.MergeRowsExec
import org.apache.spark.sql.execution.exchange._
import org.apache.spark.sql.execution.{SortExec, SparkPlan}
import org.apache.spark.sql.skewext.SparkShims

/**
 * Remembers what the query wants of a join's partitions as long as the plan shows it: Spark drops a
 * `repartition(k)` or a sort above a join that gives its rows so anyway, and from then on nobody
 * can tell that somebody relies on it.
 */
object RequiredLayout extends Rule[SparkPlan] {

  /** What one node wants of the joins below it: to be left whole, or else their order. */
  private class Requirement(val leftWhole: Option[SkewReason])

  /** On a join: what is wanted of it. On the nodes above it: what is wanted through them. */
  private val demands = TreeNodeTag[Seq[Requirement]]("skewext.demands")

  /** On the node that wants it. */
  private val wants = TreeNodeTag[Requirement]("skewext.wants")

  private def demandsOn(node: SparkPlan): Seq[Requirement] =
    node.getTagValue(demands).getOrElse(Nil)

  /** Why the join must be left whole, if it must. */
  def reasonToLeaveWhole(join: SparkPlan): Option[SkewReason] =
    demandsOn(join).flatMap(_.leftWhole).headOption

  /** Whether the rows of each partition must have the order that the join says they have. */
  def isOrderWanted(join: SparkPlan): Boolean = demandsOn(join).exists(_.leftWhole.isEmpty)

  override def apply(plan: SparkPlan): SparkPlan = {
    plan.foreach {
      case shuffle: ShuffleExchangeExec if isRepartition(shuffle) =>
        demand(shuffle, shuffle.child, Some(SkewReason.UserRepartition))
      case write: WriteFilesExec if write.bucketSpec.isDefined =>
        demand(write, write.child, Some(SkewReason.BucketedWrite))
      // Of a join whose hint says which side the target is, more may be sliced than nothing.
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
   * Of the first joins below, as what is below these is theirs to ask for; or of all: the number of
   * tasks is the same in all of a stage.
   */
  private def demand(
      by: SparkPlan,
      child: SparkPlan,
      leftWhole: Option[SkewReason],
      ofAll: Boolean = false): Unit = {
    val wanted = new Requirement(leftWhole)
    by.setTagValue(wants, wanted)
    def mark(node: SparkPlan): Unit = node match {
      case _: Exchange | _: QueryStageExec =>
      case _ =>
        node.setTagValue(demands, demandsOn(node) :+ wanted)
        if (ofAll || !isJoin(node)) node.children.foreach(mark)
    }
    mark(child)
  }

  /**
   * When exchanges are planned. What a node wants is not a join's to give if there is an exchange in
   * between, or if the node is still there and so gives it itself.
   */
  object AfterExchanges extends Rule[SparkPlan] {
    override def apply(plan: SparkPlan): SparkPlan = {
      visit(plan, above = Set.empty, settled = Set.empty)
      plan
    }

    /**
     * @param above what is wanted through the nodes above
     * @param settled what joins below need not give
     */
    private def visit(node: SparkPlan, above: Set[Requirement], settled: Set[Requirement]): Unit = {
      if (isJoin(node)) {
        val left = demandsOn(node).filterNot(settled)
        if (left.isEmpty) node.unsetTagValue(demands) else node.setTagValue(demands, left)
      }
      val through = above ++ demandsOn(node)
      val nowSettled = node match {
        case shuffle: ShuffleExchangeLike if isRepartition(shuffle) =>
          settled ++ through ++ node.getTagValue(wants)
        case _: Exchange => settled ++ through
        case _: SortExec => settled ++ node.getTagValue(wants)
        case _ => settled
      }
      node.children.foreach(visit(_, through, nowSettled))
    }
  }

  private def isJoin(plan: SparkPlan): Boolean = plan match {
    case _: MultiJoinExec | SparksShuffledJoin(_) => true
    case _ => false
  }

  private def isRepartition(shuffle: ShuffleExchangeLike): Boolean =
    shuffle.outputPartitioning.isInstanceOf[HashPartitioning] &&
      (shuffle.shuffleOrigin == REPARTITION_BY_COL || shuffle.shuffleOrigin == REPARTITION_BY_NUM)
}
