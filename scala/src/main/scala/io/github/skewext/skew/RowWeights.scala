package io.github.skewext.skew

/**
 * By how much the work with a partition is more than its bytes say.
 *
 * Sizes are those of compressed shuffle files. If only keys are shuffled, as of the right side of a
 * semi join, millions of equal ones have hardly any bytes there, and each is sorted or looked up like
 * any other row. Where rows were counted ([[KeySketch]]), a partition weighs at least what as many
 * rows of a usual partition have.
 *
 * For example, four partitions of 1,000 rows in 8,000 bytes, and one of 50,000 rows in 9,000 bytes,
 * 49,000 of them with one key: the last weighs as much as 400,000 bytes, 44 times what it has.
 */
private[skewext] object RowWeights {

  /** So much lighter than usual rows are those that equal each other, as they are compressed to nothing. */
  val OfEqualRows = 4.0

  /** How far from its expectation the number of samples is taken to be, in standard deviations. */
  private val Deviations = 3.0

  /**
   * @param bytes of each partition
   * @param sampled how many of its rows were counted
   * @param every of how many rows one was
   * @return a factor for the bytes of each partition, at least 1; nothing if there are no counts to go
   *         by
   */
  def of(bytes: IndexedSeq[Long], sampled: IndexedSeq[Long], every: Int): IndexedSeq[Double] =
    if (bytes.size != sampled.size || sampled.forall(_ == 0)) {
      IndexedSeq.empty
    } else {
      val rowBytes = median(bytes.zip(sampled).collect {
        case (b, n) if n > 0 => b / (n.toDouble * every)
      })
      bytes.zip(sampled).map { case (b, n) =>
        if (b > 0) math.max(1.0, atLeast(n, every) * rowBytes / b) else 1.0
      }
    }

  /** Chance alone must not make a partition heavier than others. */
  private def atLeast(sampled: Long, every: Int): Double = {
    val deviation = math.sqrt(sampled * (1.0 - 1.0 / every))
    math.max(0.0, sampled - Deviations * deviation) * every
  }

  private def median(values: IndexedSeq[Double]): Double = {
    val sorted = values.sorted
    (sorted(sorted.size / 2) + sorted((sorted.size - 1) / 2)) / 2
  }
}
