package io.github.skewext.report

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
    val profiles = inputs.zip(keys).map { case (input, compared) =>
      new KeyPass(session, input, compared.map(SqlInternals.normalizeFloats)).run(
        session.sessionState.conf.numShufflePartitions,
        KeyProfile.sketchSize(minShare),
        withBytes = false,
        asked = Nil)
    }
    val types = keys.head.map(_.dataType)
    val found = profiles.flatMap(p => p.frequent((minShare * p.rows.sum).toLong)).distinct
    FrequentKeys(
      profiles.map(_.rows.sum),
      found.map { key =>
        val row = key.row(types.size)
        val literals = types.zipWithIndex.map { case (t, i) => Literal(row.get(i, t), t) }
        literals -> profiles.map { profile =>
          val (low, high) = profile.bounds(key)
          (low + high) / 2.0
        }
      })
  }
}
