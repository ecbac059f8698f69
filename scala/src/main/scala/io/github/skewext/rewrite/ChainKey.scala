package io.github.skewext.rewrite

import io.github.skewext.plan.KeyTypes

import org.apache.spark.sql.catalyst.expressions.{LeafExpression, Unevaluable}
import org.apache.spark.sql.types._

/**
 * A key column of a group of inputs, as some of them show it: null where none of `inputs` has the
 * row, else the value of the first one that has it. `coalesce(a.k, b.k)` is one of these, and so is
 * `a.k`. It stands in for such expressions while a chain is looked at, and occurs in no plan.
 *
 * @param column which column of the key
 * @param inputs the ids of the inputs, in the order in which they are asked
 * @param dataType the type that the column has in this place; the key may have become a wider one
 */
private[skewext] case class ChainKey(column: Int, inputs: Seq[Int], dataType: DataType)
    extends LeafExpression
    with Unevaluable {
  override def nullable: Boolean = true
}

private[skewext] object ChainKey {

  /** Whether values of the type that are equal are identical: -0.0 and 0.0 are not. */
  def isExact(dataType: DataType): Boolean = dataType match {
    case ArrayType(element, _) => isExact(element)
    case struct: StructType => struct.forall(field => isExact(field.dataType))
    case other => KeyTypes.comparedByBytes(other)
  }
}

/** Whether any of these inputs has the row. Occurs in no plan, as [[ChainKey]]. */
private[skewext] case class ChainPresence(inputs: Seq[Int])
    extends LeafExpression
    with Unevaluable {
  override def nullable: Boolean = false
  override def dataType: DataType = BooleanType
}
