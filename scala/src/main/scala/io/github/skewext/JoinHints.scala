package io.github.skewext

import org.apache.spark.sql.catalyst.optimizer.JoinSelectionHelper
import org.apache.spark.sql.catalyst.plans.logical.{Join, JoinHint, JoinStrategyHint}
import org.apache.spark.sql.execution.SparkPlan

/**
 * What the hints of a join say: those of the user, and those that Spark gives to joins of its own.
 *
 * In a MERGE with WHEN MATCHED Spark looks for target rows that match twice. It does so partition by
 * partition of the joined rows, and so asks of the join, by the hint NO_BROADCAST_AND_REPLICATION,
 * that no row of the target is in two of them.
 */
object JoinHints extends JoinSelectionHelper {

  /** The join that an operator was planned for. */
  def logicalJoin(join: SparkPlan): Option[Join] =
    join.logicalLink.collect { case logical: Join => logical }

  /** How Spark is asked to do the join. */
  def strategy(join: Join): Option[JoinStrategyHint] =
    (join.hint.leftHint ++ join.hint.rightHint).flatMap(_.strategy).headOption

  /** Whether rows of the left side, and of the right side, may be read by several tasks. */
  def mayReplicate(join: SparkPlan): (Boolean, Boolean) = {
    val hint = logicalJoin(join).fold(JoinHint.NONE)(_.hint)
    (!hintToNotBroadcastAndReplicateLeft(hint), !hintToNotBroadcastAndReplicateRight(hint))
  }

  /** Whether a side of the join must not be read by several tasks. */
  def forbidsReplication(join: Join): Boolean = hintToNotBroadcastAndReplicate(join.hint)

  def forbidsReplication(join: SparkPlan): Boolean = logicalJoin(join).exists(forbidsReplication)
}
