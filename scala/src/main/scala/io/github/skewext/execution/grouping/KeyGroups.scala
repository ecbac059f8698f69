package io.github.skewext.execution.grouping

import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/**
 * The rows of all inputs, key by key. Ordering (or hashing) rows,
 * keeping them in memory and spilling them is the implementation's business; which keys come out,
 * and how their rows become output, is the caller's. Of an input that the caller calls `single` only
 * one row of each key takes part in combinations, whichever it is.
 */
private[skewext] trait KeyGroups {

  /** The row of each input in the current combination, null where the input lacks the key. */
  def rows: Array[UnsafeRow]

  /** Goes to the next key, leaving what is left of this one, and sets the first combination. */
  def nextGroup(): Boolean

  /** Goes to the next combination of rows of the current key. */
  def nextCombination(): Boolean

  /** After `nextCombination`: the inputs before this one have the rows that they had before. */
  def firstChanged: Int

  /** Whether the current key has a null; the group is then one row. */
  def keyHasNull: Boolean

  /** Bytes written to disk so far. */
  def spillSize: Long

  /** The most memory held at a time, in bytes. */
  def peakMemory: Long
}
