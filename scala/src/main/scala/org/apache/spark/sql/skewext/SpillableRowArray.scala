package org.apache.spark.sql.skewext

import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/**
 * An array of rows that can be read repeatedly. It holds up to `rowsInMemory` rows on the heap, and
 * more in pages that Spark accounts for and spills. Lives here because Spark's array is
 * `private[sql]`.
 */
class SpillableRowArray(rowsInMemory: Int) {
  private val rows = SparkShims.rowArray(rowsInMemory)

  def add(row: UnsafeRow): Unit = rows.add(row)

  def isEmpty: Boolean = rows.isEmpty

  def iterator: Iterator[UnsafeRow] = rows.generateIterator()

  def clear(): Unit = rows.clear()

  def spillSize: Long = rows.spillSize
}
