package io.github.skewext.skew.run

import io.github.skewext.facts.ComparedByBytes
import io.github.skewext.skew.plan.Slice

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, BindReferences, Expression, UnsafeProjection, UnsafeRow}
import org.apache.spark.unsafe.Platform

/**
 * Divides rows among tasks that all read them, by a hash of the row content. The position of a row
 * cannot decide: if a block is recomputed after a failure, its rows may have another order.
 *
 * @param columns the columns to hash, bound to the rows
 * @param allColumns whether these are all columns, so that the row's own bytes can be hashed
 */
case class RowShare(columns: Seq[Expression], allColumns: Boolean) {

  def filter(rows: Iterator[InternalRow], slice: Slice): Iterator[InternalRow] =
    if (slice.shares == 1) {
      rows
    } else {
      val shareOf = among(slice.shares)
      rows.filter(shareOf(_) == slice.share)
    }

  /** Returns the share of each row, from 0 until `shares`. */
  def among(shares: Int): InternalRow => Int = {
    lazy val project = UnsafeProjection.create(columns)
    row => {
      val bytes = row match {
        case unsafe: UnsafeRow if allColumns => unsafe
        case other => project(other)
      }
      // Scales the upper half of the hash to the shares. A division would take longer than the
      // rest.
      ((RowShare.hash(bytes) >>> 32) * shares >>> 32).toInt
    }
  }
}

object RowShare {

  /**
   * Every task that reads the block hashes every row. A step hashes two words, as rows consist of
   * words, and the two do not depend on each other.
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

  // 2 to the 64, divided by the golden ratio.
  private val Mix = 0x9e3779b97f4a7c15L

  def of(input: Seq[Attribute]): RowShare = {
    val chosen = columns(input)
    RowShare(
      chosen.map(a => BindReferences.bindReference(a: Expression, input)),
      allColumns = chosen.size == input.size)
  }

  /** Whether rows of one key can differ in their hashes. */
  def possible(input: Seq[Attribute], keys: Seq[Expression]): Boolean =
    columns(input).exists(a => !keys.exists(_.references.contains(a)))

  /**
   * The columns whose bytes are the same if the row is recomputed. Sums of floating-point numbers
   * are not repeatable, nor are arrays that collect values in the order of arrival. These are the
   * types without bytewise equality.
   */
  private def columns(input: Seq[Attribute]): Seq[Attribute] =
    input.filter(ComparedByBytes(_))
}
