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
    val profiles = inputs.zip(keys).map { case (input, compared) =>
      new KeyPass(session, input, compared.map(SqlInternals.normalizeFloats)).run(
        session.sessionState.conf.numShufflePartitions,
        KeyProfile.sketchSize(minShare),
        withBytes = false,
        asked = Nil)
    }
    val types = keys.head.map(_.dataType)
    val frequent = profiles.flatMap(p => p.frequent((minShare * p.rows.sum).toLong))
    FrequentKeys(
      profiles.map(_.rows.sum),
      frequent.distinct.map { key =>
        val row = key.row(types.size)
        val literals = types.zipWithIndex.map { case (t, i) => Literal(row.get(i, t), t) }
        literals -> profiles.map { profile =>
          val (low, high) = profile.bounds(key)
          (low + high) / 2.0
        }
      })
  }
}
