package org.apache.spark.sql.skewext

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.ExternalAppendOnlyUnsafeRowArray

/**
 * Rows that can be read again and again: on the heap up to `rowsInMemory`, then in pages that Spark
 * accounts for and spills. Lives here because Spark's array is `private[sql]`.
 */
class SpillableRowArray(rowsInMemory: Int) {
  // No threshold of rows for spilling: memory decides.
  private val rows = new ExternalAppendOnlyUnsafeRowArray(rowsInMemory, Int.MaxValue)

  def add(row: UnsafeRow): Unit = rows.add(row)

  def isEmpty: Boolean = rows.isEmpty

  def iterator: Iterator[UnsafeRow] = rows.generateIterator()

  def clear(): Unit = rows.clear()

  def spillSize: Long = rows.spillSize
}
