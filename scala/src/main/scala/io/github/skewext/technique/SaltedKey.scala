package io.github.skewext.technique

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildSide}

/**
 * The number of parts of a hot key's rows. Left rows are divided into `leftSalts` parts and right
 * rows into `rightSalts`. Each part of one side meets each part of the other in a cell of its own.
 * With 3 and 2:
 *
 * {{{
 *             right 0   right 1
 *   left 0    cell 0    cell 1
 *   left 1    cell 2    cell 3
 *   left 2    cell 4    cell 5
 * }}}
 *
 * A left row of part 1 is in the cells 2 and 3, and a right row of part 1 in the cells 1, 3 and 5.
 * All rows of other keys are in cell 0.
 *
 * @param key the key in the form that [[SaltKeysExec]] computes for each row.
 */
case class SaltedKey(key: UnsafeRow, leftSalts: Int, rightSalts: Int) {

  /** The number of parts of a side's rows. */
  def salts(side: BuildSide): Int = if (side == BuildLeft) leftSalts else rightSalts

  /** The number of cells that contain a row of a side. */
  def copies(side: BuildSide): Int = if (side == BuildLeft) rightSalts else leftSalts

  /** The first cell of the rows of a part. */
  def firstCell(side: BuildSide, salt: Int): Int =
    if (side == BuildLeft) salt * rightSalts else salt

  /** The distance between neighbouring cells of a row. */
  def stride(side: BuildSide): Int = if (side == BuildLeft) 1 else rightSalts
}
