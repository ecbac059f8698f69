package io.github.skewext.skew

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, BindReferences, Expression, UnsafeProjection, XxHash64}
import org.apache.spark.sql.types._

/**
 * Divides rows among tasks that all read them, by what is in the row. The number of a row would not
 * do: a block that is written again after a failure may have its rows in another order.
 *
 * @param columns what to divide by, bound to the rows
 */
case class RowShare(columns: Seq[Expression]) {

  def filter(rows: Iterator[InternalRow], slice: Slice): Iterator[InternalRow] =
    if (slice.shares == 1) {
      rows
    } else {
      val hash = UnsafeProjection.create(Seq(new XxHash64(columns)))
      rows.filter(row => Math.floorMod(hash(row).getLong(0), slice.shares.toLong) == slice.share)
    }
}

object RowShare {

  def of(input: Seq[Attribute]): RowShare =
    RowShare(columns(input).map(a => BindReferences.bindReference(a: Expression, input)))

  /** Whether rows of one key can be told apart. */
  def possible(input: Seq[Attribute], keys: Seq[Expression]): Boolean =
    columns(input).exists(a => !keys.exists(_.references.contains(a)))

  /**
   * Columns that have the same value if the row is computed again. Sums of floating-point numbers
   * need not, nor what is collected in the order in which rows arrive.
   */
  private def columns(input: Seq[Attribute]): Seq[Attribute] = input.filter(_.dataType match {
    case BooleanType | ByteType | ShortType | IntegerType | LongType | DateType | TimestampType |
        TimestampNTZType | StringType | BinaryType =>
      true
    case _: DecimalType | _: YearMonthIntervalType | _: DayTimeIntervalType => true
    case _ => false
  })
}
