package io.github.skewext.rows

import java.util.{Arrays, BitSet}

import io.github.skewext.facts.EvaluatedInTurn

import org.apache.spark.sql.catalyst.expressions.{Expression, UnsafeProjection, UnsafeRow, XXH64}

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

/** The keys of a set that were met. Valid only for rows whose keys are in the set. */
private[skewext] final class MatchedKeyFilter(
    keys: NormalizedKeys,
    hashes: Array[Long],
    met: BitSet) {

  private[this] val projections = keys.projections

  def contains(input: Int, row: UnsafeRow): Boolean = {
    val key = projections(input)(row)
    val hash = keys.hash(key.getBaseObject, key.getBaseOffset, key.getSizeInBytes)
    val i = Arrays.binarySearch(hashes, hash)
    i >= 0 && met.get(i)
  }
}
