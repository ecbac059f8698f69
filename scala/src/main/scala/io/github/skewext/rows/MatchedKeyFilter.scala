package io.github.skewext.rows

import java.util.{Arrays, BitSet}

import org.apache.spark.sql.catalyst.expressions.UnsafeRow

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
