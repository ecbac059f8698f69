package io.github.skewext.bucket

/**
 * How many partitions a join of tables with different numbers of buckets has. A bucket of the larger
 * number belongs to one of the smaller, if the one divides the other, as both are the hash modulo the
 * number. So a table can be read as if it had fewer buckets; it cannot be read as if it had more.
 *
 * With 8, 16 and 64 buckets, nothing is shuffled in 8 partitions, one table in 16, two in 64. Fewer
 * partitions leave cores idle, a shuffle costs what it moves: with 4 cores 8 partitions are as good as
 * 64, with 100 cores not.
 */
private[bucket] object BucketCounts {

  /**
   * @param count partitions by the key, none if it has to be shuffled in any case
   * @param divides whether it can be read in fewer
   * @param canForget whether it can be shuffled into fewer, instead of setting the number for others
   * @param isDone whether it has been shuffled into so many
   * @param size in bytes
   */
  case class Input(
      count: Option[Int],
      divides: Boolean,
      canForget: Boolean,
      isDone: Boolean,
      size: BigInt) {

    /** Whether it need not be shuffled for so many partitions. */
    def fits(partitions: Int, maxRatio: Int): Boolean = count.exists { n =>
      n == partitions ||
      (divides && n % partitions == 0 && n / partitions <= maxRatio)
    }
  }

  /** How much a byte costs that is shuffled, where reading one costs 1. */
  private val ShuffledByte = 3.0

  /** What is the best, if some input has to be read otherwise for it. */
  def choose(inputs: Seq[Input], maxRatio: Int, cores: Int): Option[Int] = {
    val total = inputs.map(_.size.toDouble).sum
    def cost(partitions: Int): Double =
      total / math.min(partitions, cores) +
        ShuffledByte * inputs
          .filterNot(_.fits(partitions, maxRatio))
          .map(_.size.toDouble)
          .sum / cores
    def isPossible(partitions: Int): Boolean = inputs.forall { input =>
      input.fits(partitions, maxRatio) || input.canForget || input.count.forall(_ < partitions)
    }
    // Adaptive execution asks again when a part is done, which must not be done once more.
    val done = inputs.filter(_.isDone).flatMap(_.count)
    val counts = if (done.isEmpty) inputs.flatMap(_.count) else done
    val candidates = counts.distinct.filter(isPossible)
    val best = candidates.sortBy(n => (cost(n), -n)).headOption
    best.filter { n =>
      done.nonEmpty || inputs.exists(i => i.fits(n, maxRatio) && !i.count.contains(n))
    }
  }
}
