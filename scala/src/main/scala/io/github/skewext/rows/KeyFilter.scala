package io.github.skewext.rows

import java.util.{Arrays, BitSet}

import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/**
 * An approximate set of key hashes, a Bloom filter with one hash function. It contains all hashes
 * that were added, and possibly others. Its size does not grow. With more keys than bits it is
 * useless.
 *
 * @param bits binary logarithm of the number of bits
 */
private[skewext] final class KeyFilter(bits: Int) {

  import KeyFilter._

  private[this] val words = new Array[Long](1 << (bits - 6))
  private[this] val shift = 64 - bits

  def add(hash: Long): Unit = {
    val bit = (hash * Mix >>> shift).toInt
    words(bit >>> 6) |= 1L << bit
  }

  def mayHave(hash: Long): Boolean = {
    val bit = (hash * Mix >>> shift).toInt
    (words(bit >>> 6) & (1L << bit)) != 0
  }
}

private[skewext] object KeyFilter {

  // 2 to the 64, divided by the golden ratio. The multiplication is necessary because hashes of one
  // bucket, and short ones, differ in few bits.
  private val Mix = 0x9e3779b97f4a7c15L

  /** 1 KB to 1 MB, which fits into the processor's caches. */
  private val MinBits = 13
  private val MaxBits = 23

  /**
   * A filter for the keys of so many bytes of a shuffle. It has about one bit for every four bytes,
   * which is a few bits for each row.
   */
  def ofBytes(bytes: Long): KeyFilter = ofBits(bytes / 4)

  /** A filter for at most so many keys. It takes one in twenty other keys for one of them. */
  def ofKeys(keys: Int): KeyFilter = ofBits(8L * keys)

  private def ofBits(bits: Long): KeyFilter = {
    val wanted = 64 - java.lang.Long.numberOfLeadingZeros(bits)
    new KeyFilter(math.max(MinBits, math.min(MaxBits, wanted)))
  }
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
