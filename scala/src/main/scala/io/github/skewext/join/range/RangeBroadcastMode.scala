package io.github.skewext.join.range

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.plans.physical.BroadcastMode
import org.apache.spark.sql.types.DataType

/**
 * Broadcasts a side of a range join as a [[RangeRelation]].
 *
 * @param ends bound to the rows.
 * @param types of the columns of the rows.
 */
private[skewext] case class RangeBroadcastMode(ends: RangeEnds, types: Seq[DataType])
    extends BroadcastMode {

  override def transform(rows: Array[InternalRow]): Array[InternalRow] =
    transform(rows.iterator, Some(rows.length.toLong))

  override def transform(
      rows: Iterator[InternalRow],
      sizeHint: Option[Long]): Array[InternalRow] = {
    val builder = new RangeRelationBuilder(ends, types)
    lazy val toUnsafe = UnsafeProjection.create(types.toArray)
    rows.foreach {
      case row: UnsafeRow => builder.insert(row)
      case other => builder.insert(toUnsafe(other))
    }
    builder.result()
  }

  override lazy val canonicalized: BroadcastMode =
    RangeBroadcastMode(ends.map(_.canonicalized), types)
}
