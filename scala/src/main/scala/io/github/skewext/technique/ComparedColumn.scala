package io.github.skewext.technique

import org.apache.spark.sql.catalyst.expressions.{Coalesce, Expression, IsNull, Literal}
import org.apache.spark.sql.types.DataType

/**
 * A column that the join compares.
 *
 * @param isNullSafe whether it compares by `<=>`, which Spark replaces by two comparisons: of the
 *                   values, with a default for null, and of whether they are null.
 */
private[skewext] case class ComparedColumn(dataType: DataType, isNullSafe: Boolean) {

  /** The number of values that the join compares for a value of the column. */
  def numComparisons: Int = if (isNullSafe) 2 else 1

  /** The values that the join compares for a value of the column. */
  def compared(value: Literal): Seq[Literal] =
    if (!isNullSafe) Seq(value)
    else if (value.value == null) Seq(Literal.default(dataType), Literal(true))
    else Seq(value, Literal(false))
}

private[skewext] object ComparedColumn {

  def apply(key: Expression): ComparedColumn = ComparedColumn(key.dataType, isNullSafe = false)

  /** The columns that the join compares, from the pairs of keys that Spark makes of them. */
  def of(request: TechniqueRequest): Seq[ComparedColumn] = of(request.leftKeys, request.rightKeys)

  def of(leftKeys: Seq[Expression], rightKeys: Seq[Expression]): Seq[ComparedColumn] =
    of(leftKeys.zip(rightKeys).toList)

  private def of(keys: List[(Expression, Expression)]): Seq[ComparedColumn] = keys match {
    case (left, right) :: (isLeftNull, isRightNull) :: more
        if isNullSafe(left, isLeftNull) && isNullSafe(right, isRightNull) =>
      ComparedColumn(left.dataType, isNullSafe = true) +: of(more)
    case (left, _) :: more => ComparedColumn(left) +: of(more)
    case Nil => Nil
  }

  private def isNullSafe(value: Expression, isNull: Expression): Boolean = (value, isNull) match {
    case (Coalesce(Seq(a, _: Literal)), IsNull(b)) => a.semanticEquals(b)
    case _ => false
  }
}
