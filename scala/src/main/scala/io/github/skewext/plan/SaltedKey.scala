package io.github.skewext.plan

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildSide}

/**
 * Into how many parts the rows of a hot key are divided. Left rows are divided into `leftSalts`
 * parts, right rows into `rightSalts`, and every part of the one side meets every part of the other
 * in a cell of its own. With 3 and 2:
 *
 * {{{
 *             right 0   right 1
 *   left 0    cell 0    cell 1
 *   left 1    cell 2    cell 3
 *   left 2    cell 4    cell 5
 * }}}
 *
 * A left row of part 1 is in the cells 2 and 3, a right row of part 1 in the cells 1, 3 and 5. All
 * rows of other keys are in cell 0.
 *
 * @param key as [[SaltKeysExec]] finds it in a row
 */
case class SaltedKey(key: UnsafeRow, leftSalts: Int, rightSalts: Int) {

  /** Parts of the rows of a side. */
  def salts(side: BuildSide): Int = if (side == BuildLeft) leftSalts else rightSalts

  /** How many cells each row of a side is in. */
  def copies(side: BuildSide): Int = if (side == BuildLeft) rightSalts else leftSalts

  /** The first cell of a row of a part. */
  def firstCell(side: BuildSide, salt: Int): Int =
    if (side == BuildLeft) salt * rightSalts else salt

  /** From one cell of a row to the next. */
  def stride(side: BuildSide): Int = if (side == BuildLeft) 1 else rightSalts
}
