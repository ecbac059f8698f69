package io.github.skewext.profile

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{Expression, Literal}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.skewext.SqlInternals

/**
 * The keys with many rows in at least one input, found like in a report: by one pass over the keys
 * of each input that shuffles only sketches.
 *
 * @param rows the number of rows of each input, without rows with a null in the key.
 * @param keys the keys as literals, each with its number of rows in every input; 0 for an input
 *             whose sketch lacks the key.
 */
private[skewext] case class FrequentKeys(rows: Seq[Long], keys: Seq[(Seq[Literal], Seq[Double])])

private[skewext] object FrequentKeys {

  /**
   * @param keys the compared expressions of each input.
   * @param minShare the share of an input's rows above which all keys are found.
   */
  def of(
      session: SparkSession,
      inputs: Seq[LogicalPlan],
      keys: Seq[Seq[Expression]],
      minShare: Double): FrequentKeys = SqlInternals.withActive(session) {
    val seen = passes(session, inputs, keys).map { pass =>
      val profile = pass.run(
        session.sessionState.conf.numShufflePartitions,
        KeyProfile.sketchSize(minShare),
        withBytes = false,
        asked = Nil)
      Seen(profile, 1.0, leastRows = 0)
    }
    found(seen, keys, minShare)
  }

  /**
   * Estimates the frequent keys from a limited number of rows of each input. The rows are the first
   * ones of a few partitions, so keys that occur only elsewhere are not found. An input that must
   * be computed before it can be read is computed as a whole.
   *
   * @param numRows a function from the position of an input to its estimated number of rows.
   */
  def sampled(
      session: SparkSession,
      inputs: Seq[LogicalPlan],
      keys: Seq[Seq[Expression]],
      minShare: Double,
      maxRows: Int,
      numRows: Int => Double): FrequentKeys = SqlInternals.withActive(session) {
    val seen = passes(session, inputs, keys).zipWithIndex.map { case (pass, i) =>
      val (profile, isWhole) = pass.sample(
        session.sessionState.conf.numShufflePartitions,
        KeyProfile.sketchSize(minShare),
        maxRows)
      val rows = if (isWhole) profile.numRows.toDouble else numRows(i)
      val times = math.max(1.0, rows / math.max(1L, profile.numRows))
      Seen(profile, times, leastRows = if (isWhole) 0 else LeastSampledRows)
    }
    found(seen, keys, minShare)
  }

  /**
   * The least number of sampled rows of a frequent key, so that chance alone does not make a key
   * frequent.
   */
  private val LeastSampledRows = 32L

  /**
   * @param times the number of rows of the input that a sampled row represents.
   * @param leastRows the least number of sampled rows of a frequent key.
   */
  private case class Seen(profile: KeyProfile, times: Double, leastRows: Long)

  private def passes(
      session: SparkSession,
      inputs: Seq[LogicalPlan],
      keys: Seq[Seq[Expression]]): Seq[KeyPass] =
    inputs.zip(keys).map { case (input, compared) =>
      new KeyPass(session, input, compared.map(SqlInternals.normalizeFloats))
    }

  private def found(seen: Seq[Seen], keys: Seq[Seq[Expression]], minShare: Double): FrequentKeys = {
    val types = keys.head.map(_.dataType)
    val frequent = seen.flatMap { case Seen(profile, _, leastRows) =>
      profile.frequent(math.max(leastRows, (minShare * profile.rows.sum).toLong))
    }
    FrequentKeys(
      seen.map(s => math.round(s.profile.rows.sum * s.times)),
      frequent.distinct.map { key =>
        val row = key.row(types.size)
        val literals = types.zipWithIndex.map { case (t, i) => Literal(row.get(i, t), t) }
        literals -> seen.map { s =>
          val (low, high) = s.profile.bounds(key)
          (low + high) / 2.0 * s.times
        }
      })
  }
}
