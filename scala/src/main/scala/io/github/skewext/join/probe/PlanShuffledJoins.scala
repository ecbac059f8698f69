package io.github.skewext.join.probe

import io.github.skewext.facts.{BuiltinShuffledJoin, JoinHints}
import io.github.skewext.inputs.KeyTypes
import io.github.skewext.join.StoragePartitions
import io.github.skewext.platform.{ExtensionPoints, SkewConf}

import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
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

  private def isOn(conf: SQLConf): Boolean =
    SkewConf.enabled(conf) && !SkewConf.excludes(conf, ruleName)

  /** The reason why a join stays Spark's if Spark shuffles it. */
  private[skewext] def whyNot(join: Join): Option[ProbeReason] = {
    val conf = SQLConf.get
    def keys = join match {
      case ExtractEquiJoinKeys(_, leftKeys, _, _, _, _, _, _) => leftKeys
      case _ => Nil
    }
    if (!conf.getConf(SkewConf.JOIN_ENABLED)) Some(ProbeReason.SwitchedOff)
    else if (JoinHints.strategiesOfUser(join).nonEmpty) Some(ProbeReason.Hint)
    else if (join.isStreaming) Some(ProbeReason.Streaming)
    else if (!join.condition.forall(_.deterministic)) Some(ProbeReason.NonDeterministic)
    else if (keys.exists(k => KeyTypes.mayDifferInBytes(k.dataType))) Some(ProbeReason.KeyType)
    else if (onlySparkSplits(conf)) Some(ProbeReason.Splits)
    else if (StoragePartitions.areIn(join.children, conf).forall(identity)) {
      Some(ProbeReason.StoragePartitions)
    } else None
  }

  /** Spark's rule for skewed partitions recognizes Spark's joins by their classes. */
  private def onlySparkSplits(conf: SQLConf): Boolean =
    conf.adaptiveExecutionEnabled && conf.getConf(SQLConf.SKEW_JOIN_ENABLED) &&
      !(SkewConf.splits(conf) && ExtensionPoints.hasRulesBeforeExchanges)

  private def planned(join: Join): Option[SparkPlan] = SparkShims
    .joinSelection(join)
    .collect {
      case BuiltinShuffledJoin(j) if PairKind.of(j.joinType).isDefined =>
        BuildProbeJoinExec(j.leftKeys, j.rightKeys, j.joinType, j.condition, j.left, j.right)
    }
    .headOption
}
