package io.github.skewext.facts

import org.apache.spark.sql.catalyst.optimizer.JoinSelectionHelper
import org.apache.spark.sql.catalyst.plans.logical.{Join, JoinHint}
import org.apache.spark.sql.execution.SparkPlan

/**
 * Reads the hints of joins: those of users, and those that Spark adds to its own joins.
 *
 * In a MERGE with WHEN MATCHED, Spark runs a cardinality check for target rows with several
 * matches. The check runs in each partition of the joined rows, so no target row may be in two
 * partitions. Spark requires this with the hint NO_BROADCAST_AND_REPLICATION on the join.
 */
object JoinHints extends JoinSelectionHelper {

  /** The strategies that hints of the query select, without those that only Spark sets. */
  def strategiesOfUser(join: Join): Seq[String] =
    Seq(join.hint.leftHint, join.hint.rightHint).flatten
      .flatMap(_.strategy)
      .map(_.displayName)
      .filterNot(OfSpark)

  /** Adaptive execution and MERGE set these. */
  private val OfSpark =
    Set("no_broadcast_hash", "prefer_shuffle_hash", "no_broadcast_and_replication")

  /** The logical join that an operator implements. */
  def logicalJoin(join: SparkPlan): Option[Join] =
    join.logicalLink.collect { case logical: Join => logical }

  /** Whether several tasks may read the same rows of the left side, and of the right side. */
  def mayReplicate(join: SparkPlan): (Boolean, Boolean) = {
    val hint = logicalJoin(join).fold(JoinHint.NONE)(_.hint)
    (!hintToNotBroadcastAndReplicateLeft(hint), !hintToNotBroadcastAndReplicateRight(hint))
  }

  /** Whether there is a side whose rows must not be read by several tasks. */
  def forbidsReplication(join: Join): Boolean = hintToNotBroadcastAndReplicate(join.hint)

  def forbidsReplication(join: SparkPlan): Boolean = logicalJoin(join).exists(forbidsReplication)
}
