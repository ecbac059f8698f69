package io.github.skewext.technique

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateUnsafeRowJoiner
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
    extends Iterator[InternalRow] {

  private[this] val keyOf = UnsafeProjection.create(keys)
  private[this] lazy val wholeRow = UnsafeProjection.create(schema)
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
  private[this] var isReady = false

  override def hasNext: Boolean = {
    if (!isReady) isReady = cells.next()
    while (!isReady && rows.hasNext) {
      take(rows.next())
      isReady = cells.next()
    }
    isReady
  }

  override def next(): InternalRow = {
    if (!hasNext) throw new NoSuchElementException
    isReady = false
    added.setInt(0, cells.cell)
    if (withKind) added.setInt(1, cells.kind)
    outputRows += 1
    joiner.join(if (cells.kind == SaltKeys.Marker) markerOf(row) else row, added)
  }

  private def take(input: InternalRow): Unit = {
    row = input match {
      case unsafe: UnsafeRow => unsafe
      case other => wholeRow(other)
    }
    val key = keyOf(input)
    if (key.anyNull() || cells.mayBeHot(hashOfKey.eval(key).asInstanceOf[Long])) {
      val hash = XXH64.hashUnsafeBytes(row.getBaseObject, row.getBaseOffset, row.getSizeInBytes, 0L)
      cells.take(key, hash)
    } else {
      cells.takeOther()
    }
  }
}
