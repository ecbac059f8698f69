package io.github.skewext.rows

import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/**
 * The rows of all inputs, grouped by key. Implementations sort or hash the rows, store them and
 * spill them. The caller decides which keys are in the result and builds the output rows. If the
 * caller declares an input `single`, only one row per key takes part in combinations, an arbitrary
 * one.
 */
private[skewext] trait KeyGroups {

  /** The row of each input in the current combination; null if the input lacks the key. */
  def rows: Array[UnsafeRow]

  /**
   * Moves to the next key, skips the rest of the current one, and sets the first combination.
   * Returns false after the last key.
   */
  def nextGroup(): Boolean

  /** Moves to the next combination of rows of the current key. Returns false after the last. */
  def nextCombination(): Boolean

  /** After `nextCombination`: the rows of the inputs before this one have not changed. */
  def firstChanged: Int

  /** Whether each row stays where it is until the groups are freed. */
  def rowsStay: Boolean = false

  /** Whether the current key contains a null. The group is then a single row. */
  def keyHasNull: Boolean

  /** Bytes written to disk so far. */
  def spillSize: Long
}
