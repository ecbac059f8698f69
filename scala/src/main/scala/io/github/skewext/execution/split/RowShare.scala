package io.github.skewext.execution.split

import io.github.skewext.plan.KeyTypes

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, BindReferences, Expression, UnsafeProjection, UnsafeRow}
import org.apache.spark.unsafe.Platform

/**
 * Divides rows among tasks that all read them, by what is in the row. The number of a row would not
 * do: a block that is written again after a failure may have its rows in another order.
 *
 * @param columns what to divide by, bound to the rows
 * @param allColumns whether these are all columns, so that the bytes of the row say the same
 */
case class RowShare(columns: Seq[Expression], allColumns: Boolean) {

  def filter(rows: Iterator[InternalRow], slice: Slice): Iterator[InternalRow] =
    if (slice.shares == 1) {
      rows
    } else {
      val shareOf = among(slice.shares)
      rows.filter(shareOf(_) == slice.share)
    }

  /** Which of so many shares a row is in. */
  def among(shares: Int): InternalRow => Int = {
    lazy val project = UnsafeProjection.create(columns)
    row => {
      val bytes = row match {
        case unsafe: UnsafeRow if allColumns => unsafe
        case other => project(other)
      }
      // The upper half of the hash as a fraction of one: a division would take longer than the rest.
      ((RowShare.hash(bytes) >>> 32) * shares >>> 32).toInt
    }
  }
}

object RowShare {

  /**
   * Every task of the block asks it of every row: a word at a time, as rows are whole words, and two
   * of them at once, as neither waits for the other.
   */
  private def hash(row: UnsafeRow): Long = {
    val base = row.getBaseObject
    var offset = row.getBaseOffset
    val end = offset + row.getSizeInBytes
    var even = 0L
    var odd = Mix
    while (offset + 8 < end) {
      even = (even ^ Platform.getLong(base, offset)) * Mix
      odd = (odd ^ Platform.getLong(base, offset + 8)) * Mix
      even ^= even >>> 32
      odd ^= odd >>> 32
      offset += 16
    }
    if (offset < end) even = (even ^ Platform.getLong(base, offset)) * Mix
    (even ^ (even >>> 29) ^ java.lang.Long.rotateLeft(odd, 17)) * Mix
  }

  // 2 to the 64 over the golden ratio.
  private val Mix = 0x9e3779b97f4a7c15L

  def of(input: Seq[Attribute]): RowShare = {
    val chosen = columns(input)
    RowShare(
      chosen.map(a => BindReferences.bindReference(a: Expression, input)),
      allColumns = chosen.size == input.size)
  }

  /** Whether rows of one key can be told apart. */
  def possible(input: Seq[Attribute], keys: Seq[Expression]): Boolean =
    columns(input).exists(a => !keys.exists(_.references.contains(a)))

  /**
   * Columns that have the same bytes if the row is computed again. Sums of floating-point numbers
   * need not, nor what is collected in the order in which rows arrive: the types whose values are
   * not compared by their bytes either.
   */
  private def columns(input: Seq[Attribute]): Seq[Attribute] =
    input.filter(KeyTypes.comparedByBytes(_))
}
