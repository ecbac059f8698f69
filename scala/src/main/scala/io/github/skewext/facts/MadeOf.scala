package io.github.skewext.facts

import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, QueryStageExec}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec
import org.apache.spark.sql.execution.window.{WindowExec, WindowGroupLimitExec}

/**
 * An operator of skewext that computes a partition of its rows from the same partition of some of
 * its children.
 */
trait PartitionwiseOperator extends SparkPlan {

  /** Empty if this one does not. */
  def madeOf: Seq[MadeOf.Part]
}

/**
 * The nodes that rules look through. Each computes a partition of its rows from the same partition
 * of some of its children. Rules look through no other nodes. A rule that evaluates a node's
 * expressions for other rows, or once more, must check the node itself
 * ([[io.github.skewext.facts.StableRows]]).
 */
object MadeOf {

  /**
   * How a node uses the rows of a child.
   *
   * @param linear whether a part of the child's rows yields a part of the node's rows
   * @param inOrder whether each row depends on one row of the child alone, and rows keep their
   *                order
   */
  case class Part(child: SparkPlan, linear: Boolean, inOrder: Boolean = false)

  def unapply(plan: SparkPlan): Option[Seq[Part]] = plan match {
    case p: ProjectExec => Some(Seq(Part(p.child, linear = true, inOrder = true)))
    case f: FilterExec => Some(Seq(Part(f.child, linear = true, inOrder = true)))
    case g: GenerateExec => Some(Seq(Part(g.child, linear = true)))
    case s: SortExec if !s.global => Some(Seq(Part(s.child, linear = true)))
    case a: BaseAggregateExec => Some(Seq(Part(a.child, linear = false)))
    case w: WindowExec => Some(Seq(Part(w.child, linear = false)))
    case w: WindowGroupLimitExec => Some(Seq(Part(w.child, linear = false)))
    case j: BroadcastHashJoinExec =>
      j.buildSide match {
        case BuildLeft => Some(Seq(Part(j.right, linear = true)))
        case BuildRight => Some(Seq(Part(j.left, linear = true)))
      }
    case BuiltinShuffledJoin(j) if !JoinHints.forbidsReplication(j) =>
      val (left, right) = j.joinType match {
        case _: InnerLike => (true, true)
        case LeftOuter | LeftExistence(_) => (true, false)
        case RightOuter => (false, true)
        case _ => (false, false)
      }
      Some(Seq(Part(j.left, left), Part(j.right, right)))
    case ours: PartitionwiseOperator if ours.madeOf.nonEmpty => Some(ours.madeOf)
    case _ => None
  }

  /** A node of Spark that stands for another node and returns its rows. */
  object Wrapped {
    def unapply(plan: SparkPlan): Option[SparkPlan] = plan match {
      case stage: QueryStageExec => Some(stage.plan)
      case reused: ReusedExchangeExec => Some(reused.child)
      case read: AQEShuffleReadExec => Some(read.child)
      case WholeStageCodegenExec(child) => Some(child)
      case InputAdapter(child) => Some(child)
      case _ => None
    }
  }
}
