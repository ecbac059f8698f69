package io.github.skewext.rewrite

import org.apache.spark.sql.catalyst.expressions.{LeafExpression, Unevaluable}
import org.apache.spark.sql.types._

/**
 * A key column of a tree, as some of its inputs show it: the value of the first of `inputs` that
 * has the row, or null if none has it. `coalesce(a.k, b.k)` is such a column, and so is `a.k`. It
 * replaces these expressions in the analysis of a chain, and occurs in no plan.
 *
 * @param column the position of the column in the key.
 * @param inputs the ids of the inputs, in the order of the `coalesce`.
 * @param dataType the type of the column here; the key may have a wider one.
 */
private[skewext] case class ChainKey(column: Int, inputs: Seq[Int], dataType: DataType)
    extends LeafExpression
    with Unevaluable {
  override def nullable: Boolean = true
}

/** Whether one of these inputs has the row. Like [[ChainKey]], it occurs in no plan. */
private[skewext] case class ChainPresence(inputs: Seq[Int])
    extends LeafExpression
    with Unevaluable {
  override def nullable: Boolean = false
  override def dataType: DataType = BooleanType
}
