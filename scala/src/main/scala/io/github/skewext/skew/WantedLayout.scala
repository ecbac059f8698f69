package io.github.skewext.skew

import io.github.skewext.multijoin.MultiFullJoinExec

import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.adaptive.QueryStageExec
import org.apache.spark.sql.execution.datasources.WriteFilesExec
import org.apache.spark.sql.execution.exchange._
import org.apache.spark.sql.execution.joins.ShuffledJoin
import org.apache.spark.sql.execution.{FilterExec, ProjectExec, SortExec, SparkPlan}

/**
 * Remembers what the query wants of a join's partitions as long as the plan shows it: Spark drops a
 * `repartition(k)` or a sort above a join that gives its rows so anyway, and from then on nobody
 * can tell that somebody relies on it.
 */
object WantedLayout extends Rule[SparkPlan] {

  private val leftWhole = TreeNodeTag[SkewReason]("skewext.leftWhole")
  private val inOrder = TreeNodeTag[Unit]("skewext.inOrder")

  /** Why the join must be left whole, if it must. */
  def reasonToLeaveWhole(join: SparkPlan): Option[SkewReason] = join.getTagValue(leftWhole)

  /** Whether the rows of each partition must have the order that the join says they have. */
  def isOrderWanted(join: SparkPlan): Boolean = join.getTagValue(inOrder).isDefined

  override def apply(plan: SparkPlan): SparkPlan = {
    plan.foreach {
      case shuffle: ShuffleExchangeExec if isRepartition(shuffle) =>
        nextJoins(shuffle.child).foreach(_.setTagValue(leftWhole, SkewReason.UserRepartition))
      case write: WriteFilesExec if write.bucketSpec.isDefined =>
        nextJoins(write.child).foreach(_.setTagValue(leftWhole, SkewReason.BucketedWrite))
      case SortExec(_, false, child, _) =>
        nextJoins(child).foreach(_.setTagValue(inOrder, ()))
      case _ =>
    }
    plan
  }

  /**
   * When exchanges are planned: a join right below a repartition that is still there need not have
   * the partitions that it asks for.
   */
  object Kept extends Rule[SparkPlan] {
    override def apply(plan: SparkPlan): SparkPlan = {
      plan.foreach {
        case shuffle: ShuffleExchangeLike if isRepartition(shuffle) =>
          joinRightBelow(shuffle.child)
            .filter(reasonToLeaveWhole(_).contains(SkewReason.UserRepartition))
            .foreach(_.unsetTagValue(leftWhole))
        case _ =>
      }
      plan
    }

    private def joinRightBelow(plan: SparkPlan): Option[SparkPlan] = plan match {
      case join @ (_: MultiFullJoinExec | _: ShuffledJoin) => Some(join)
      case p: ProjectExec => joinRightBelow(p.child)
      case f: FilterExec => joinRightBelow(f.child)
      case _ => None
    }
  }

  private def isRepartition(shuffle: ShuffleExchangeLike): Boolean =
    shuffle.outputPartitioning.isInstanceOf[HashPartitioning] &&
      (shuffle.shuffleOrigin == REPARTITION_BY_COL || shuffle.shuffleOrigin == REPARTITION_BY_NUM)

  /** The first joins below: what is below these is theirs to ask for. */
  private def nextJoins(plan: SparkPlan): Seq[SparkPlan] = plan match {
    case join @ (_: MultiFullJoinExec | _: ShuffledJoin) => Seq(join)
    case _: Exchange | _: QueryStageExec => Nil
    case other => other.children.flatMap(nextJoins)
  }
}
