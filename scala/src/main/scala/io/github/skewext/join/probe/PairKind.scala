package io.github.skewext.join.probe

import org.apache.spark.sql.catalyst.plans._

/**
 * What a join of two sides returns, independent of which side is built.
 *
 * @param pairs whether it returns the pairs that match.
 * @param alone for each side, whether it returns rows without a match: of an outer or an anti join.
 * @param once for each side, whether it returns each row with a match once: of a semi join.
 * @param flagged whether it returns each row of the left side once, with a flag for a match.
 */
private[skewext] case class PairKind(
    pairs: Boolean,
    alone: Array[Boolean],
    once: Array[Boolean],
    flagged: Boolean = false) {

  /** Whether the columns of the right side are not in the output. */
  def onlyLeft: Boolean = !pairs

  /** Whether a row of a side is in the output by itself, if it is known whether it has a match. */
  def shows(side: Int, matched: Boolean): Boolean =
    (if (matched) once(side) else alone(side)) || (flagged && side == 0)

  /** Whether some rows of a side are in the output by themselves. */
  def showsAny(side: Int): Boolean = shows(side, matched = true) || shows(side, matched = false)

  /** Whether rows of a side without a match are in the output. */
  def showsUnmatched(side: Int): Boolean = shows(side, matched = false)
}

private[skewext] object PairKind {

  private val Neither = Array(false, false)
  private val Left = Array(true, false)

  def of(joinType: JoinType): Option[PairKind] = joinType match {
    case _: InnerLike => Some(PairKind(pairs = true, Neither, Neither))
    case LeftOuter => Some(PairKind(pairs = true, Left, Neither))
    case RightOuter => Some(PairKind(pairs = true, Array(false, true), Neither))
    case FullOuter => Some(PairKind(pairs = true, Array(true, true), Neither))
    case LeftSemi => Some(PairKind(pairs = false, Neither, Left))
    case LeftAnti => Some(PairKind(pairs = false, Left, Neither))
    case ExistenceJoin(_) => Some(PairKind(pairs = false, Neither, Neither, flagged = true))
    case _ => None
  }
}
