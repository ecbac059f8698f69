package io.github.skewext

import java.util.concurrent.atomic.AtomicLong

/**
 * The seeds of random tests. They are the same in each run, so that a test fails only where the code or
 * the test has changed. SKEWEXT_RANDOM_SEED gives another first seed; a failure names its seed.
 */
object RandomSeed {

  val first: Long = sys.env.get("SKEWEXT_RANDOM_SEED").fold(20240229L)(_.toLong)

  private val numbers = new AtomicLong(first)

  /** Another one each time, for rows that have another order each time. */
  def next(): Long = numbers.getAndIncrement()
}
