package io.github.skewext.explain

import io.github.skewext.facts.{BuiltinShuffledJoin, MadeOf}
import io.github.skewext.join.exec.MultiJoinExec
import io.github.skewext.merge.SpreadSourceNullKeys
import io.github.skewext.nullkeys.{NullKeySpreading, SpreadNullKeys, SpreadNulls}
import io.github.skewext.platform.{ExtensionPoints, LoadedExtension, SkewConf}
import io.github.skewext.skew.run.SplitJoinExec

import org.apache.spark.sql.catalyst.plans.physical.{ClusteredDistribution, SinglePartition}
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.exchange.{ENSURE_REQUIREMENTS, ShuffleExchangeLike}
import org.apache.spark.sql.internal.SQLConf

/** The tasks for rows with a null key, and the reason if all such rows go to one task. */
private[skewext] object ExplainedNullKeys {

  def of(join: MultiJoinExec, adaptive: Boolean, conf: SQLConf): String =
    if (join.spreadNullKeys) "spread over all tasks"
    else if (!SpreadNullKeys.canComeOut(join)) "none in the result"
    else s"$OneTask (${whyTogether(join, adaptive, conf)})"

  /** Pieces of a split partition share the rows. */
  val OneTask = "in one task, unless it is split"

  /**
   * The same for the source of a MERGE, if the source must not be split and the join returns its
   * rows with a null key.
   */
  def ofSource(join: SparkPlan, adaptive: Boolean, conf: SQLConf): Option[String] = join match {
    case split: SplitJoinExec if split.spreadNullKeys && !PlannedJoin.isMultiJoin(split) =>
      SourceSpread
    case BuiltinShuffledJoin(join) if (join.leftKeys ++ join.rightKeys).exists(SpreadNulls.isOne) =>
      SourceSpread
    case BuiltinShuffledJoin(join) if SpreadSourceNullKeys.sourceWithoutKeys(join).isDefined =>
      val why = whyTogether(join, adaptive, conf)
      Some(s"rows of the source without a key all go to one task: $why")
    case _ => None
  }

  private val SourceSpread = Some("rows of the source without a key are spread over all tasks")

  private def whyTogether(join: SparkPlan, adaptive: Boolean, conf: SQLConf): String = {
    lazy val rule = excluded(join, conf)
    lazy val partitioned = partitionedInputs(join)
    if (!LoadedExtension.isIn(join.session)) LoadedExtension.Missing
    else if (ExtensionPoints.missing.isDefined) ExtensionPoints.missing.get
    else if (!adaptive) "the plan is not adaptive"
    else if (!conf.getConf(SkewConf.MULTI_JOIN_SPREAD_NULL_KEYS)) {
      s"${SkewConf.MULTI_JOIN_SPREAD_NULL_KEYS.key} is false"
    } else if (rule.isDefined) {
      rule.get
    } else if (join.children.forall(_.outputPartitioning == SinglePartition)) {
      "there is only one partition"
    } else if (partitioned.nonEmpty) {
      s"already partitioned by the key: input ${partitioned.mkString(", ")}"
    } else {
      "an operator above or another join may use the partitioning by the key"
    }
  }

  /** The inputs that have the partitioning of the key without the exchange of the join. */
  private def partitionedInputs(join: SparkPlan): Seq[Int] =
    join.children.indices.filter { i =>
      (exchangeOf(join.children(i)), join.requiredChildDistribution(i)) match {
        case (None, _) => true
        case (Some(exchange), by: ClusteredDistribution) =>
          exchange.shuffleOrigin != ENSURE_REQUIREMENTS ||
          NullKeySpreading.saves(exchange.child.outputPartitioning, by)
        case _ => false
      }
    }

  /** Why a rule that would spread the rows does not run. Both are for the source of a MERGE. */
  private def excluded(join: SparkPlan, conf: SQLConf): Option[String] = {
    val ofSource = join match {
      case _: MultiJoinExec => Nil
      case _ => Seq(SpreadSourceNullKeys)
    }
    (SpreadNullKeys +: ofSource)
      .flatMap(rule => Origins.whyExcluded(conf, rule.ruleName))
      .headOption
  }

  def exchangeOf(input: SparkPlan): Option[ShuffleExchangeLike] = input match {
    case exchange: ShuffleExchangeLike => Some(exchange)
    case MadeOf.Wrapped(plan) => exchangeOf(plan)
    case SortExec(_, false, child, _) => exchangeOf(child)
    case _ => None
  }
}
