package io.github.skewext.sketch

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{Expression, Literal}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.skewext.SqlInternals

/**
 * The keys that have many rows in some input, found as a report finds them: by one pass over the keys
 * of each input, with nothing shuffled but sketches.
 *
 * @param rows the rows of each input, without those with a null in the key
 * @param keys each as literals, with the rows that it has in each input; of those that an input's
 *             sketch does not have, none
 */
private[skewext] case class FrequentKeys(rows: Seq[Long], keys: Seq[(Seq[Literal], Seq[Double])])

private[skewext] object FrequentKeys {

  /**
   * @param keys what is compared, for each input
   * @param minShare keys with more than this share of an input's rows are all found
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
   * The same from a look at no more than so many rows of each input: estimates. What a key has at
   * other places than the beginnings of a few partitions is not seen. An input that has to be computed
   * first is computed as a whole.
   *
   * @param numRows how many rows an input has, by its position, as far as that is known
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

  /** By how many rows of a sample a key is told from chance. */
  private val LeastSampledRows = 32L

  /**
   * @param times how many rows of the input a row that was seen stands for
   * @param leastRows what was seen of a key at least
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
