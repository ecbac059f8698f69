package io.github.skewext.technique

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildSide}

/**
 * How a salted join treats the rows of one of its sides.
 *
 * @param marks whether each task adds a marker to its rows of a divided key, see [[SaltedJoin]].
 * @param oneRow whether each task returns only one row of a hot key: the number does not matter.
 */
case class SaltedSide(side: BuildSide, hot: Seq[SaltedKey], marks: Boolean, oneRow: Boolean) {
  override def toString: String = s"$side, ${hot.size} hot keys"
}

/**
 * The number of parts of a hot key's rows. Each part of one side meets each part of the other in a
 * cell of its own. With 3 parts on the left and 2 on the right:
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

  /** The cells that contain the rows of a part of a side. */
  def cells(side: BuildSide, part: Int): Seq[Int] =
    if (side == BuildLeft) (0 until rightSalts).map(part * rightSalts + _)
    else (0 until leftSalts).map(_ * rightSalts + part)
}
