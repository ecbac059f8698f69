package io.github.skewext.rows

import io.github.skewext.facts.EvaluatedInTurn

import org.apache.spark.sql.catalyst.expressions.{Expression, UnsafeProjection, XXH64}

/**
 * The keys of each input in a form in which equal keys have equal bytes.
 *
 * @param keys the key expressions of each input, bound to its rows
 * @param hashBits number of bits of a hash, as in [[JoinKeys]]
 */
private[skewext] case class NormalizedKeys(keys: Seq[Seq[Expression]], hashBits: Int) {

  def inRows: JoinKeys = JoinKeys(keys, hashBits)

  def projections: Array[UnsafeProjection] = keys.map(EvaluatedInTurn.projection).toArray

  def hash(base: AnyRef, offset: Long, length: Int): Long =
    JoinKeys.truncate(XXH64.hashUnsafeBytes(base, offset, length, JoinKeys.Seed), hashBits)
}
