package io.github.skewext.rows

import io.github.skewext.shuffle.ShuffledColumns

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.DataType

/**
 * Converts the rows of the inputs to `UnsafeRow`s. Exchanges return `UnsafeRow`s already, so an
 * input gets a projection only if it returns other rows.
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

  /** The same for all rows of an input. Blocks of columns remain blocks. */
  def all(input: Int, rows: Iterator[InternalRow]): Iterator[InternalRow] = rows match {
    case _: ShuffledColumns => rows
    case other => other.map(apply(input, _))
  }
}
