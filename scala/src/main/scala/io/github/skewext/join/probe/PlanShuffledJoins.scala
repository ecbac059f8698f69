package io.github.skewext.join.probe

import io.github.skewext.join.KeyTypes
import io.github.skewext.rules.SkewConf

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.JoinType
import org.apache.spark.sql.catalyst.plans.logical.{HintInfo, Join, LogicalPlan}
import org.apache.spark.sql.execution.joins.{ShuffledHashJoinExec, SortMergeJoinExec}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.SparkShims

/**
 * Plans each join as [[BuildProbeJoinExec]] that Spark would plan as a sort-merge join or a shuffled
 * hash join.
 *
 * It calls Spark's own strategy for joins, and replaces what that returns. So the logical plan
 * remains, with all that Spark does to it: reordering, run-time filters, dynamic partition pruning,
 * and the change to a broadcast when adaptive execution plans again. Exchanges, and sorts of
 * operators above, are planned after it. So no operator relies on an order that the join lacks.
 */
object PlanShuffledJoins extends SparkStrategy {

  /** A name as rules have, for `spark.skewext.excludedRules`. */
  private[skewext] val ruleName: String = getClass.getName.stripSuffix("$")

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case join: Join if isOn(SQLConf.get) && whyNot(join).isEmpty => planned(join).toSeq
    case _ => Nil
  }

  private def isOn(conf: SQLConf): Boolean = SkewConf.enabled(conf) &&
    conf.getConf(SkewConf.JOIN_ENABLED) && !SkewConf.excludes(conf, ruleName)

  /** The reason why a join stays Spark's, whichever operator Spark chooses. */
  private[skewext] def whyNot(join: Join): Option[String] = {
    val reasons: Seq[(Boolean, String)] = Seq(
      Seq(join.hint.leftHint, join.hint.rightHint).flatten.exists(isOfUser) -> "a hint of the user",
      join.isStreaming -> "streaming input",
      (!join.condition.forall(_.deterministic)) -> "the condition is not deterministic")
    reasons.collectFirst { case (true, why) => why }
  }

  /** Adaptive execution sets hints, too. A user cannot write these. */
  private def isOfUser(hint: HintInfo): Boolean =
    hint.strategy.exists(strategy => !OfSpark(strategy.displayName))

  private val OfSpark =
    Set("no_broadcast_hash", "prefer_shuffle_hash", "no_broadcast_and_replication")

  private def planned(join: Join): Option[SparkPlan] = SparkShims.joinSelection(join).collect {
    case j: SortMergeJoinExec if areSupported(j.joinType, j.leftKeys) =>
      BuildProbeJoinExec(j.leftKeys, j.rightKeys, j.joinType, j.condition, j.left, j.right)
    case j: ShuffledHashJoinExec if areSupported(j.joinType, j.leftKeys) =>
      BuildProbeJoinExec(j.leftKeys, j.rightKeys, j.joinType, j.condition, j.left, j.right)
  }.headOption

  private def areSupported(joinType: JoinType, keys: Seq[Expression]): Boolean =
    PairKind.of(joinType).isDefined && keys.nonEmpty &&
      !keys.exists(k => KeyTypes.mayDifferInBytes(k.dataType))
}
