package io.github.skewext.skew

import io.github.skewext.execution.split.{JoinedInputs, SplitJoinExec, SplitReadSpecs}
import io.github.skewext.execution.{MadeOf, SparksShuffledJoin}
import io.github.skewext.internal.{LogicalLinks, SkewConf}
import io.github.skewext.plan.SkewSettings

import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.joins.{ShuffledHashJoinExec, ShuffledJoin, SortMergeJoinExec}
import org.apache.spark.sql.internal.SQLConf

/**
 * Joins of Spark's by the same key above a join that is split, in the same stage. One that gives each row
 * of this side by itself (inner, left outer, semi and anti joins with it on the left) may have it in
 * parts, if each part meets all that the other side has of the partition:
 * {{{
 * Join LEFT OUTER                    Join LEFT OUTER (skew=true)
 * :- MultiFullJoin            =>     :- MultiFullJoin (skew: 1 partition in 2 pieces)
 * +- read 0, 1, 2                    +- read 0, 1, 1, 2
 * }}}
 */
private[skewext] object JoinsAbove {

  /**
   * The plan with such joins divided as the split one is.
   *
   * @param plan with the split join
   * @param join what has been split
   * @param by what has taken its place
   */
  def divided(plan: SparkPlan, join: SparkPlan, by: SparkPlan): Option[SparkPlan] = for {
    splits <- by.collectFirst { case s: SplitJoinExec => s.splits }
    split <- plan.collectFirst { case s: SplitJoinExec if s.splits eq splits => s }
    joined <- JoinedInputs.of(join).toOption
    read <- partitioned(joined.inputs.head.plan)
  } yield {
    val readAs = PartitionedInput.readAs(read.sources.head)
    val specs = SplitReadSpecs.readsOf(split.children.head).map {
      case PartialReducerPartitionSpec(p, _, _, _) => CoalescedPartitionSpec(p, p + 1)
      case other => other
    }
    def comesFrom(node: SparkPlan): Boolean = node match {
      case s: SplitJoinExec => s.splits eq splits
      case MadeOf(parts) => parts.exists(p => p.linear && comesFrom(p.child))
      case _ => false
    }
    plan.transformUp {
      case SparksShuffledJoin(above)
          if !above.isSkewJoin && RequiredLayout.reasonToLeaveWhole(above).isEmpty =>
        val (ofLeft, ofRight) = above match {
          case MadeOf(Seq(left, right)) => (left.linear, right.linear)
          case _ => (false, false)
        }
        def whole(side: SparkPlan): Option[SparkPlan] = partitioned(side)
          .filter(_.sources.forall(PartitionedInput.readAs(_) == readAs))
          .filter(isWorthIt(above, _, specs))
          .map(_.reading(specs))
        val children =
          if (ofLeft && comesFrom(above.left)) whole(above.right).map(above.left -> _)
          else if (ofRight && comesFrom(above.right)) whole(above.left).map(_ -> above.right)
          else None
        children.fold[SparkPlan](above) { case (l, r) => inParts(above, l, r) }
    }
  }

  private def partitioned(plan: SparkPlan): Option[PartitionedInput] =
    PartitionedInput.of(plan, SQLConf.get.getConf(SkewConf.BUCKET_SKEW)).toOption

  /** Every task of a split partition reads what the other side has of it. */
  private def isWorthIt(
      join: ShuffledJoin,
      other: PartitionedInput,
      specs: Seq[ShufflePartitionSpec]): Boolean = {
    val read = specs.collect { case CoalescedPartitionSpec(start, end, _) =>
      other.bytes.slice(start, end).sum
    }.sum
    read <= SkewSettings.of(SQLConf.get, join).maxRereadFactor * other.bytes.sum
  }

  private def inParts(join: ShuffledJoin, left: SparkPlan, right: SparkPlan): SparkPlan = {
    LogicalLinks.replacing[SparkPlan](join)(join match {
      case j: SortMergeJoinExec => j.copy(left = left, right = right, isSkewJoin = true)
      case j: ShuffledHashJoinExec => j.copy(left = left, right = right, isSkewJoin = true)
    })
  }
}
