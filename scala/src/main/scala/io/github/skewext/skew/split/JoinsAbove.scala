package io.github.skewext.skew.split

import io.github.skewext.facts.{BuiltinShuffledJoin, MadeOf}
import io.github.skewext.platform.LogicalLinks
import io.github.skewext.skew.run.{SplitOperator, SplitReadSpecs}

import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.joins.ShuffledJoin
import org.apache.spark.sql.internal.SQLConf

/**
 * Splits Spark's joins on the same key that are above a split join in the same stage. Such a join
 * can be split if it returns the rows of this side one by one: an inner join, or a left outer, semi
 * or anti join with this side on the left. Each piece then reads all rows that the other side has
 * in the partition:
 * {{{
 * Join LEFT OUTER                    Join LEFT OUTER (skew=true)
 * :- MultiFullJoin            =>     :- MultiFullJoin (skew: 1 partition in 2 pieces)
 * +- read 0, 1, 2                    +- read 0, 1, 1, 2
 * }}}
 */
private[skewext] object JoinsAbove {

  /**
   * Returns the plan with these joins split like the join below them.
   *
   * @param plan the plan, with the split join.
   * @param join the join before the split.
   * @param by the plan that replaces the join.
   */
  def divided(plan: SparkPlan, join: SparkPlan, by: SparkPlan): Option[SparkPlan] = for {
    splits <- by.collectFirst { case SplitOperator(s) => s }
    split <- plan.collectFirst { case made @ SplitOperator(s) if s eq splits => made }
    joined <- JoinedInputs.of(join).toOption
    read <- partitioned(joined.inputs.head.plan)
  } yield {
    val readAs = PartitionedInput.readAs(read.sources.head)
    val specs = SplitReadSpecs.readsOf(split.children.head).map {
      case PartialReducerPartitionSpec(p, _, _, _) => CoalescedPartitionSpec(p, p + 1)
      case other => other
    }
    def comesFrom(node: SparkPlan): Boolean = node match {
      case SplitOperator(s) => s eq splits
      case MadeOf(parts) => parts.exists(p => p.linear && comesFrom(p.child))
      case _ => false
    }
    plan.transformUp {
      case BuiltinShuffledJoin(above)
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
    PartitionedInput.of(plan).toOption

  /**
   * Whether the rereads stay within maxRereadFactor: every task of a split partition reads all rows
   * that the other side has in that partition.
   */
  private def isWorthIt(
      join: ShuffledJoin,
      other: PartitionedInput,
      specs: Seq[ShufflePartitionSpec]): Boolean = {
    val read = specs.collect { case CoalescedPartitionSpec(start, end, _) =>
      other.bytes.slice(start, end).sum
    }.sum
    read <= JoinSettings.of(SQLConf.get, join).maxRereadFactor * other.bytes.sum
  }

  private def inParts(join: ShuffledJoin, left: SparkPlan, right: SparkPlan): SparkPlan = {
    LogicalLinks.replacing[SparkPlan](join)(
      BuiltinShuffledJoin.withParts(join)(left = left, right = right, isSkewJoin = true))
  }
}
