package org.apache.spark.sql.skewext

import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/**
 * Rows that can be read again and again: on the heap up to `rowsInMemory`, then in pages that Spark
 * accounts for and spills. Lives here because Spark's array is `private[sql]`.
 */
class SpillableRowArray(rowsInMemory: Int) {
  private val rows = SparkShims.rowArray(rowsInMemory)

  def add(row: UnsafeRow): Unit = rows.add(row)

  def isEmpty: Boolean = rows.isEmpty

  def iterator: Iterator[UnsafeRow] = rows.generateIterator()

  def clear(): Unit = rows.clear()

  def spillSize: Long = rows.spillSize
}
