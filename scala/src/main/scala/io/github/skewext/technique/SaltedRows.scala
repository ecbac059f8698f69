package io.github.skewext.technique

import io.github.skewext.rows.UnsafeInputs

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateUnsafeRowJoiner
import org.apache.spark.sql.execution.RowIterator
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.types.{IntegerType, StructField, StructType}

/**
 * The rows of one task with their cells.
 *
 * @param keys the keys, bound to the rows
 * @param isOfKey whether each column of the rows is used by the key
 */
private[skewext] final class SaltedRows(
    keys: Seq[Expression],
    schema: StructType,
    isOfKey: Seq[Boolean],
    withKind: Boolean,
    cells: SaltedCells,
    outputRows: SQLMetric,
    rows: Iterator[InternalRow])
    extends RowIterator {

  private[this] val keyOf = UnsafeProjection.create(keys)
  private[this] val asUnsafe = new UnsafeInputs(Seq(schema.map(_.dataType)))
  private[this] val hashOfKey = SaltedCells.hashOfKey(keys.zipWithIndex.map { case (key, i) =>
    BoundReference(i, key.dataType, key.nullable)
  })
  private[this] lazy val markerOf = UnsafeProjection.create(schema.zipWithIndex.map {
    case (column, i) if isOfKey(i) => BoundReference(i, column.dataType, column.nullable)
    case (column, _) => Literal(null, column.dataType)
  })

  private[this] val numAdded = if (withKind) 2 else 1
  private[this] val joiner = GenerateUnsafeRowJoiner.create(
    schema,
    StructType((0 until numAdded).map(i => StructField(s"added$i", IntegerType, nullable = false))))
  private[this] val added = {
    val row = new UnsafeRow(numAdded)
    row.pointTo(new Array[Byte](8 + 8 * numAdded), 8 + 8 * numAdded)
    row
  }

  private[this] var row: UnsafeRow = _

  override def advanceNext(): Boolean = {
    var found = cells.next()
    while (!found && rows.hasNext) {
      take(rows.next())
      found = cells.next()
    }
    if (found) outputRows += 1
    found
  }

  override def getRow: InternalRow = {
    added.setInt(0, cells.cell)
    if (withKind) added.setInt(1, cells.kind)
    joiner.join(if (cells.kind == SaltKeys.Marker) markerOf(row) else row, added)
  }

  private def take(input: InternalRow): Unit = {
    row = asUnsafe(0, input)
    val key = keyOf(input)
    if (key.anyNull() || cells.mayBeHot(hashOfKey.eval(key).asInstanceOf[Long])) {
      val hash = XXH64.hashUnsafeBytes(row.getBaseObject, row.getBaseOffset, row.getSizeInBytes, 0L)
      cells.take(key, hash)
    } else {
      cells.takeOther()
    }
  }
}
