package io.github.skewext.skew.plan

/**
 * Factors by which the work for a partition exceeds its size in bytes.
 *
 * Sizes are those of compressed shuffle files. If only keys are shuffled, such as for the right
 * side of a semi-join, millions of equal keys compress to hardly any bytes, but each is still
 * sorted or looked up like any other row. If rows were sampled ([[KeySketch]]), a partition weighs
 * at least as much as the same number of rows in a typical partition.
 *
 * For example, take four partitions of 1,000 rows in 8,000 bytes, and one of 50,000 rows in 9,000
 * bytes, with 49,000 rows of one key. The last one weighs as much as 400,000 bytes, 44 times its
 * size.
 *
 * Rows that compress unusually well are more work than their bytes show, too. How much a partition
 * compresses is unknown, so the ratio of the whole shuffle applies to all its partitions.
 */
private[skewext] object RowWeights {

  /**
   * The weight, relative to the least of the shuffle, from which most rows of a partition are assumed
   * to be equal. Equal rows compress to almost nothing.
   */
  val OfEqualRows = 4.0

  /** The assumed error of the number of samples, in standard deviations. */
  private val Deviations = 3.0

  /**
   * The ratio of bytes in memory to bytes in files up to which files show the work. Measured ratios
   * are 1.5 for hashes, 7 for JSON and 10 for rows of nulls.
   */
  val UsualRatio = 10.0

  /**
   * @param bytes the size of each partition.
   * @param sampled the number of sampled rows of each partition.
   * @param every the sampling interval: one row in `every` is sampled.
   * @return a factor for the bytes of each partition, at least 1, or nothing if there are no
   *         samples.
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

  /**
   * @param weights the factors by rows, or nothing.
   * @param inMemory the size of all rows in memory, or 0 if it is unknown.
   * @return factors with which all partitions together weigh at least `inMemory` / `UsualRatio`.
   */
  def unpacked(
      weights: IndexedSeq[Double],
      bytes: IndexedSeq[Long],
      inMemory: Double): IndexedSeq[Double] = {
    val byRows = if (weights.isEmpty) bytes.map(_ => 1.0) else weights
    val weighed = bytes.zip(byRows).map { case (b, w) => b * w }.sum
    val factor = inMemory / UsualRatio / weighed
    if (weighed > 0 && factor > 1) byRows.map(_ * factor) else weights
  }

  /**
   * A lower bound of the number of rows, so that chance alone does not add weight to a partition.
   */
  private def atLeast(sampled: Long, every: Int): Double = {
    val deviation = math.sqrt(sampled * (1.0 - 1.0 / every))
    math.max(0.0, sampled - Deviations * deviation) * every
  }

  private[skewext] def median(values: Seq[Double]): Double = {
    val sorted = values.toIndexedSeq.sorted
    (sorted(sorted.size / 2) + sorted((sorted.size - 1) / 2)) / 2
  }
}
