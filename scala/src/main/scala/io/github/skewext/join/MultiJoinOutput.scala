package io.github.skewext.join

import io.github.skewext.join.InputRole.{Excluded, Optional, Present, Required}

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Statistics}

/** The columns and the number of rows of a multi-way join. */
object MultiJoinOutput {

  /**
   * The output of the logical and the physical node. Only this method defines order and
   * nullability.
   *
   * @param isCanonical whether the node is canonical, see `without`.
   */
  def of(
      inputs: Seq[Seq[Attribute]],
      keyColumns: Seq[Seq[Attribute]],
      keyOutput: Seq[Attribute],
      roles: Seq[InputRole],
      indicator: Option[Attribute],
      isCanonical: Boolean): Seq[Attribute] = {
    val before = inputs.scanLeft(0)(_ + _.size)
    val values = inputs.indices.flatMap { i =>
      val columns = without(inputs(i), keyColumns(i), before(i), isCanonical)
      roles(i) match {
        case Required => columns
        case Optional => columns.map(_.withNullability(true))
        case Excluded | Present => Nil
      }
    }
    val keyNullable = keyOutput.indices.map(j => keyIsNullable(keyColumns, roles, j))
    keyOutput.zip(keyNullable).map { case (a, n) => a.withNullability(n) } ++ values ++ indicator
  }

  /** The columns of an input that are not key columns. */
  def valueColumns(input: Seq[Attribute], keyColumns: Seq[Attribute]): Seq[Attribute] = {
    val keySet = AttributeSet(keyColumns)
    input.filterNot(keySet.contains)
  }

  /**
   * The columns of an input without some of them. In a canonical node, the ids of these are their
   * positions among the columns of all inputs, and are not those of the canonical inputs.
   *
   * @param before the number of columns of the inputs before this one.
   */
  def without(
      input: Seq[Attribute],
      dropped: Seq[Attribute],
      before: Int,
      isCanonical: Boolean): Seq[Attribute] =
    if (isCanonical) {
      val positions = dropped.map(_.exprId.id - before).toSet
      input.indices.filterNot(p => positions.contains(p.toLong)).map(input)
    } else {
      valueColumns(input, dropped)
    }

  /** A key column is null only in rows with a null key, if the join returns such rows. */
  private def keyIsNullable(
      keyColumns: Seq[Seq[Attribute]],
      roles: Seq[InputRole],
      column: Int): Boolean =
    roles.indices.exists { i =>
      InputRole.emitsNullKeys(roles, i) && keyColumns(i)(column).nullable
    }

  /**
   * An upper bound for the number of rows. The join returns each combination of input rows at most
   * once, and every combination contains a row of at least one input.
   */
  def maxRows(inputs: Seq[Option[Long]], roles: Seq[InputRole]): Option[Long] = {
    val factors = inputs.zip(roles).collect {
      case (rows, Required) => rows.map(BigInt(_))
      case (rows, Optional) => rows.map(BigInt(_) + 1)
    }
    if (factors.forall(_.isDefined)) {
      val product = factors.flatten.product - (if (roles.contains(Required)) 0 else 1)
      if (product.isValidLong) Some(product.toLong) else None
    } else {
      None
    }
  }
}

/**
 * Estimates the size of a [[MultiFullJoin]].
 *
 * The size is the sum of the inputs if at most one of them may have duplicate keys. Inputs with
 * duplicate keys are multiplied, as in Spark's estimate for two inputs. A smaller estimate could
 * make a join above broadcast a large result.
 */
private[skewext] object MultiJoinEstimation {

  def apply(join: MultiFullJoin): Statistics = {
    val shown = join.children.indices.filter(join.roles(_).isShown)
    val (once, repeated) = shown.partition(join.hasDistinctKeys)
    // As in Spark's estimates, an input that turned out to be empty does not make the result small.
    def sizes(of: Seq[Int]) = of.map(join.children(_).stats.sizeInBytes).filter(_ > 0)
    val size = (sizes(once).sum + (if (repeated.isEmpty) 0 else sizes(repeated).product)).max(1)
    Statistics(sizeInBytes = size)
  }
}

/** The number of rows of a plan: that of its statistics, or its size by the width of a row. */
private[skewext] object EstimatedRows {

  def of(plan: LogicalPlan): BigInt = plan.stats.rowCount.getOrElse(
    plan.stats.sizeInBytes / EstimationUtils.getSizePerRow(plan.output).max(1))
}
