package io.github.skewext.join.probe

import io.github.skewext.facts.{BuiltinShuffledJoin, ComparedByBytes, JoinHints}
import io.github.skewext.join.StoragePartitions
import io.github.skewext.platform.{ExtensionPoints, NamedStrategy, Reason, Reasons, SkewConf}

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{BroadcastQueryStageExec, LogicalQueryStage}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.SparkShims
import org.apache.spark.sql.sources.BaseRelation

/**
 * Plans each join as [[BuildProbeJoinExec]] that Spark would plan as a sort-merge join or a shuffled
 * hash join.
 *
 * It calls Spark's own strategy for joins, and replaces what that returns. So the logical plan
 * remains, with all that Spark does to it: reordering, run-time filters, dynamic partition pruning,
 * and the change to a broadcast when adaptive execution plans again. Exchanges, and sorts of
 * operators above, are planned after it. So no operator relies on an order that the join lacks.
 */
object PlanShuffledJoins extends NamedStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    // A broadcast that has begun stays one. Spark's strategy for that follows.
    case join: Join if isOn && !join.children.exists(isBroadcast) && whyNot(join).isEmpty =>
      planned(join).toSeq
    case _ => Nil
  }

  private def isBroadcast(side: LogicalPlan): Boolean = side match {
    case LogicalQueryStage(_, _: BroadcastQueryStageExec) => true
    case _ => false
  }

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
    else if (hasKeyType(join) && keys.exists(isOfKeyType)) Some(ProbeReason.KeyType)
    else if (onlySparkSplits(conf)) Some(ProbeReason.Splits)
    else if (StoragePartitions.areIn(join.children, conf).forall(identity)) {
      Some(ProbeReason.StoragePartitions)
    } else if (coalescesBuckets(join, conf)) Some(ProbeReason.CoalescedBuckets)
    else None
  }

  /** The whole condition, because its keys take longer to find. */
  private def hasKeyType(join: Join): Boolean = join.condition.exists(_.exists(isOfKeyType))

  private def isOfKeyType(e: Expression): Boolean = ComparedByBytes.mayDiffer(e.dataType)

  /** Spark's rule that reads several buckets as one recognizes Spark's joins by their classes. */
  private def coalescesBuckets(join: Join, conf: SQLConf): Boolean =
    conf.bucketingEnabled && conf.coalesceBucketsInJoinEnabled &&
      join.children.forall(_.collectLeaves().exists {
        case table: LogicalRelation => isBucketed(table.relation)
        case _ => false
      })

  private def isBucketed(relation: BaseRelation): Boolean = relation match {
    case files: HadoopFsRelation => files.bucketSpec.isDefined
    case _ => false
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

/** Why a join that Spark shuffles stays Spark's sort-merge join or shuffled hash join. */
final class ProbeReason private (text: String, advice: String) extends Reason(text, advice)

object ProbeReason extends Reasons[ProbeReason] {

  private def reason(text: String, advice: String) = listed(new ProbeReason(text, advice))

  val SwitchedOff =
    reason("spark.skewext.join.enabled is false", "Set it to true for this query.")

  val Hint = reason(
    "a join hint of the query selects the operator",
    "Remove the hint if it is no longer needed.")

  val Streaming =
    reason("a side of the join is a stream", "Nothing to do: the operator joins only batches.")

  val NonDeterministic =
    reason("the condition of the join is not deterministic", "Compute it in one of the sides.")

  val KeyType = reason(
    "a key has a type whose equal values may have different bytes",
    "In each side, cast the key to a type that compares by its bytes, such as a string in UTF8_BINARY.")

  val Splits = reason(
    "Spark splits skewed partitions of its own joins, and skewext's splits are off",
    "Set spark.skewext.skew.enabled to true. On Spark 3.5.0 skewext splits no partition.")

  val StoragePartitions = reason(
    "both sides may have the same partitions in their storage, which Spark joins without a shuffle",
    "Nothing to do. Set spark.sql.sources.v2.bucketing.enabled to false to shuffle them instead.")

  val CoalescedBuckets = reason(
    "spark.sql.bucketing.coalesceBucketsInJoin.enabled is true, and both sides have buckets, which " +
      "Spark may read together for its own joins",
    "Nothing to do. Set it to false if the sides have equally many buckets, or are shuffled.")
}
