package io.github.skewext.plan

import org.apache.spark.sql.catalyst.optimizer.JoinSelectionHelper
import org.apache.spark.sql.catalyst.plans.logical.{Join, JoinHint}
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

  /** How the join is asked to be done, by a hint of Spark's or for a technique of ours. */
  def asked(join: Join): Option[String] =
    (join.hint.leftHint ++ join.hint.rightHint)
      .find(hint => hint.strategy.isDefined || hint.isInstanceOf[TechniqueHint])
      .map(hint => hint.strategy.fold(hint.toString)(_.displayName))

  /** Whether rows of the left side, and of the right side, may be read by several tasks. */
  def mayReplicate(join: SparkPlan): (Boolean, Boolean) = {
    val hint = logicalJoin(join).fold(JoinHint.NONE)(_.hint)
    (!hintToNotBroadcastAndReplicateLeft(hint), !hintToNotBroadcastAndReplicateRight(hint))
  }

  /** Whether a side of the join must not be read by several tasks. */
  def forbidsReplication(join: Join): Boolean = hintToNotBroadcastAndReplicate(join.hint)

  def forbidsReplication(join: SparkPlan): Boolean = logicalJoin(join).exists(forbidsReplication)
}
