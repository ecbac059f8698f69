package io.github.skewext.execution.grouping

import org.apache.spark.sql.catalyst.InternalRow

/** Rows that come in the order of keys, and need not be made by who looks at the keys only. */
private[skewext] trait SortedRowIterator extends Iterator[InternalRow] {

  /** Of the rows, as those of one input. */
  def order: KeyOrder

  /**
   * What the rows come from, before its first row. Its prefixes are those of `order`. Who takes it
   * must not ask for rows here.
   */
  def source: RowCursor

  /** How many rows have been read. */
  def numRead: Long
}
