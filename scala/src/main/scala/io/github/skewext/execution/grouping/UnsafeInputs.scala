package io.github.skewext.execution.grouping

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.DataType

/**
 * The rows of the inputs as UnsafeRows. That is what exchanges give, so projections are made for an
 * input only when it gives others.
 */
private[skewext] final class UnsafeInputs(inputTypes: Seq[Seq[DataType]]) {

  private[this] val projections = new Array[UnsafeProjection](inputTypes.size)

  def apply(input: Int, row: InternalRow): UnsafeRow = row match {
    case unsafe: UnsafeRow => unsafe
    case other =>
      if (projections(input) == null) {
        projections(input) = UnsafeProjection.create(inputTypes(input).toArray)
      }
      projections(input)(other)
  }
}
