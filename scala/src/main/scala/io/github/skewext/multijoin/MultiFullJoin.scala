package io.github.skewext.multijoin

import io.github.skewext.multijoin.InputRole.{Excluded, Optional, Present, Required}
import io.github.skewext.rewrite.RewriteReason

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Statistics}

/**
 * The full outer join of N inputs on one equi-key, narrowed by a role for every input.
 *
 * With all roles `Optional` the result is, as a multiset, that of the chain
 * `c1 FULL JOIN c2 USING (k) FULL JOIN c3 USING (k) ...`. In general it is that chain, filtered to
 * the keys that every `Required` input has and no `Excluded` input has.
 *
 * A row of the output is `keyOutput ++ the other columns of each input ++ indicator`. The value of a
 * key column is that of the first input that has the key.
 *
 * @param keys expressions that are compared, per input; the same number and types in every input
 * @param keyColumns the columns of each input that hold the key's value; what `keyOutput` shows.
 *                   The same attributes as `keys` unless values that differ compare as equal.
 * @param keyOutput the key columns of the output
 * @param roles one for every input
 * @param indicator if defined, a column with the zero-based positions of the inputs that had the key
 */
case class MultiFullJoin(
    children: Seq[LogicalPlan],
    keys: Seq[Seq[Expression]],
    keyColumns: Seq[Seq[Attribute]],
    keyOutput: Seq[Attribute],
    roles: Seq[InputRole],
    indicator: Option[Attribute])
    extends LogicalPlan {

  override lazy val output: Seq[Attribute] =
    MultiFullJoin.output(children.map(_.output), keyColumns, keyOutput, roles, indicator)

  override def producedAttributes: AttributeSet = AttributeSet(keyOutput ++ indicator)

  override lazy val resolved: Boolean = childrenResolved && expressions.forall(_.resolved)

  override def maxRows: Option[Long] = MultiFullJoin.maxRows(children.map(_.maxRows), roles)

  /**
   * The sum of the inputs, not their product: keys are nearly unique where tables are integrated on
   * a key, and an estimate that explodes with N would drive every choice above this node wrong.
   */
  override def stats: Statistics = {
    val shown = children.zip(roles).collect { case (c, role) if role.isShown => c.stats }
    val rows = shown.map(_.rowCount)
    Statistics(
      sizeInBytes = shown.map(_.sizeInBytes).sum.max(1),
      rowCount = if (rows.forall(_.isDefined)) Some(rows.flatten.sum) else None)
  }

  override def simpleString(maxFields: Int): String =
    s"MultiFullJoin ${MultiFullJoin.describe(keyOutput.map(_.name), roles, indicator)}" +
      RewriteReason.madeOf(this).map(joins => s", rewritten from $joins").getOrElse("")

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[LogicalPlan]): MultiFullJoin = copy(children = newChildren)
}

object MultiFullJoin {

  /** The output of the logical and of the physical node: one home for order and nullability. */
  def output(
      inputs: Seq[Seq[Attribute]],
      keyColumns: Seq[Seq[Attribute]],
      keyOutput: Seq[Attribute],
      roles: Seq[InputRole],
      indicator: Option[Attribute]): Seq[Attribute] = {
    val values = inputs.indices.flatMap { i =>
      val columns = valueColumns(inputs(i), keyColumns(i))
      roles(i) match {
        case Required => columns
        case Optional => columns.map(_.withNullability(true))
        case Excluded | Present => Nil
      }
    }
    val keyNullable = keyOutput.indices.map(j => keyIsNullable(keyColumns, roles, j))
    keyOutput.zip(keyNullable).map { case (a, n) => a.withNullability(n) } ++ values ++ indicator
  }

  /** The columns of an input that are not its key. */
  def valueColumns(input: Seq[Attribute], keyColumns: Seq[Attribute]): Seq[Attribute] = {
    val keySet = AttributeSet(keyColumns)
    input.filterNot(keySet.contains)
  }

  /** A key column shows a null only for rows whose key has one, where these come out at all. */
  private def keyIsNullable(
      keyColumns: Seq[Seq[Attribute]],
      roles: Seq[InputRole],
      column: Int): Boolean =
    roles.indices.exists { i =>
      InputRole.emitsNullKeys(roles, i) && keyColumns(i)(column).nullable
    }

  /**
   * A bound for the rows: each combination of rows of some inputs comes out at most once, and at
   * least one input takes part.
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

  /** `[k] full outer, 4 inputs` or `[k] 3 inputs: required, optional, excluded`. */
  def describe(
      keyNames: Seq[String],
      roles: Seq[InputRole],
      indicator: Option[Attribute]): String = {
    val key = keyNames.mkString("[", ", ", "]")
    val kind = if (roles.forall(_ == Optional)) {
      s"full outer, ${roles.size} inputs"
    } else {
      s"${roles.size} inputs: ${roles.map(_.name).mkString(", ")}"
    }
    s"$key $kind" + indicator.map(a => s", indicator ${a.name}").getOrElse("")
  }
}
