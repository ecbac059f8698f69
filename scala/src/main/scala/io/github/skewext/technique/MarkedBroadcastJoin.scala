package io.github.skewext.technique

import io.github.skewext.join.MultiJoinOutput
import io.github.skewext.platform.{CanonicalOnce, HasOperator}
import io.github.skewext.technique.hint.{PlannedByTechnique, TechniqueHint}

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildSide}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Statistics}
import org.apache.spark.sql.catalyst.plans.{FullOuter, JoinType, LeftOuter, RightOuter}
import org.apache.spark.sql.execution.SparkPlan

/**
 * An outer join that broadcasts its small side and also returns that side's unmatched rows. It has
 * three inputs: both sides, and the keys of the large side once more. The third input marks the
 * rows of the small side that have a match.
 *
 * @param children the large side; the side to broadcast, without rows whose key contains a null;
 *                 and the plan that returns the keys of the large side once more.
 * @param keys the keys of each child.
 * @param rowId a column of the small side that numbers its rows.
 * @param smallSide the side of the join that is small.
 * @param made the technique and its description, for explanations.
 */
case class MarkedBroadcastJoin(
    children: Seq[LogicalPlan],
    keys: Seq[Seq[Expression]],
    rowId: Attribute,
    joinType: JoinType,
    smallSide: BuildSide,
    made: TechniqueHint.Made)
    extends PlannedByTechnique
    with HasOperator
    with CanonicalOnce[LogicalPlan] {

  private def large = children(0)

  private def small = children(1)

  override def output: Seq[Attribute] =
    MarkedBroadcastJoin.output(
      large.output,
      small.output,
      rowId,
      joinType,
      smallSide,
      isCanonicalizedPlan)

  // A row of the small side may match several rows of the large one, or none.
  override def maxRows: Option[Long] = None

  /** Both sides. Spark's default is the product of all three inputs. */
  override def stats: Statistics =
    Statistics(sizeInBytes = large.stats.sizeInBytes + small.stats.sizeInBytes)

  override protected def stringArgs: Iterator[Any] =
    Iterator(keys(0), keys(1), joinType, smallSide)

  override def operator(inputs: Seq[SparkPlan]): SparkPlan =
    MarkedBroadcastJoinExec(inputs, keys, rowId, joinType, smallSide)

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[LogicalPlan]): MarkedBroadcastJoin =
    copy(children = newChildren)
}

object MarkedBroadcastJoin {

  /**
   * The output of the logical and the physical node.
   *
   * @param isCanonical whether the node is canonical, see [[MultiJoinOutput.without]].
   */
  def output(
      large: Seq[Attribute],
      small: Seq[Attribute],
      rowId: Attribute,
      joinType: JoinType,
      smallSide: BuildSide,
      isCanonical: Boolean): Seq[Attribute] = {
    val shown = MultiJoinOutput.without(small, Seq(rowId), before = large.size, isCanonical)
    val (left, right) = if (smallSide == BuildLeft) (shown, large) else (large, shown)
    def optional(side: Seq[Attribute]) = side.map(_.withNullability(true))
    joinType match {
      case FullOuter => optional(left) ++ optional(right)
      case LeftOuter => left ++ optional(right)
      case RightOuter => optional(left) ++ right
      case other => throw new IllegalArgumentException(s"No outer join: $other")
    }
  }
}
