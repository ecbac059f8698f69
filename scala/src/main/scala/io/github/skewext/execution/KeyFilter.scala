package io.github.skewext.execution

/**
 * A set of hashes of keys that may have more than were added, but lacks none: one bit for several
 * hashes. It has the size that it is given and takes no more, however many keys there are; with more
 * of them than bits it is of no use.
 *
 * @param bits how many bits, as a power of two
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

  // 2 to the 64 over the golden ratio: the hashes of a bucket, and short ones, differ in few bits.
  private val Mix = 0x9e3779b97f4a7c15L

  /** A kilobyte at least, and at most a megabyte, which fits the processor's caches. */
  private val MinBits = 13
  private val MaxBits = 23

  /** For the keys of so many bytes of a shuffle: four or so for each bit, a few bits for each row. */
  def ofBytes(bytes: Long): KeyFilter = {
    val wanted = 64 - java.lang.Long.numberOfLeadingZeros(bytes / 4)
    new KeyFilter(math.max(MinBits, math.min(MaxBits, wanted)))
  }
}
