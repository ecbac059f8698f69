package io.github.skewext.skew.split

import io.github.skewext.facts.{BuiltinShuffledJoin, MadeOf}
import io.github.skewext.join.exec.MultiFullJoinExec
import io.github.skewext.platform.SkewConf
import io.github.skewext.skew.run.KeySketchExec

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.{ShuffleExchangeExec, ShuffleExchangeLike}
import org.apache.spark.sql.skewext.ShuffleService

/**
 * Adds a [[KeySketchExec]] below the shuffles of joins, so that [[SplitSkewedJoins]] finds keys
 * with many rows. If several sides have such a key, sizes do not show how large the output is. If
 * one side has it, sizes do not show how many rows are equal ([[RowWeights]]).
 *
 * An input that is grouped by the key is not sampled, because each key occurs once. Spark's own
 * joins are sampled only if the setting enables that or the query is part of a MERGE, because
 * sampling adds a cost to each of them.
 *
 * @param isOfMerge whether a plan is part of a MERGE
 */
case class SketchJoinKeys(isOfMerge: SparkPlan => Boolean) extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan = if (isEnabled) {
    val ofSpark = mode == SkewConf.OutputSkew.All || isOfMerge(plan)
    val mayHave = ofSpark || plan.exists(_.isInstanceOf[MultiFullJoinExec])
    val shuffles = if (mayHave) shufflesIn(plan, ofSpark) else Nil
    if (shuffles.isEmpty) plan
    else {
      val every = conf.getConf(SkewConf.SKEW_OUTPUT_SAMPLE_EVERY)
      plan.transformDown {
        case shuffle: ShuffleExchangeLike if shuffles.exists(_.plan eq shuffle) =>
          val by = shuffles.find(_.plan eq shuffle).get.by
          shuffle.withNewChildren(
            shuffle.children.map(KeySketchExec(by.expressions, by.numPartitions, every, _)))
      }
    }
  } else {
    plan
  }

  /** A plugin would not know the node that samples. */
  private def isEnabled: Boolean =
    SkewConf.splitSwitches.forall(conf.getConf(_)) &&
      mode != SkewConf.OutputSkew.Off && ShuffleService.hasSparksExchanges

  private def mode: String = conf.getConf(SkewConf.SKEW_OUTPUT_MODE)

  private case class Shuffle(plan: SparkPlan, by: HashPartitioning)

  /**
   * Visits a chain of joins once, as a whole. Visiting each of its N joins would visit N joins N
   * times.
   *
   * @param ofSpark whether to include the shuffles of Spark's joins.
   */
  private def shufflesIn(plan: SparkPlan, ofSpark: Boolean): Seq[Shuffle] = plan match {
    case join @ (_: MultiFullJoinExec | BuiltinShuffledJoin(_)) =>
      val isCounted = (ofSpark || join.isInstanceOf[MultiFullJoinExec]) &&
        RequiredLayout.reasonToLeaveWhole(join).isEmpty
      val inputs = if (isCounted) JoinedInputs.of(join).toOption else None
      inputs match {
        case Some(joined) =>
          joined.inputs.flatMap { input =>
            shuffleOf(input.plan)
              .filter(s => isBy(s.by, input.keys) && !s.plan.isInstanceOf[ShuffleQueryStageExec])
          } ++ joined.inputs.flatMap(input => shufflesIn(input.plan, ofSpark))
        case _ => join.children.flatMap(shufflesIn(_, ofSpark))
      }
    case other => other.children.flatMap(shufflesIn(_, ofSpark))
  }

  /**
   * The shuffle whose rows the input reads one by one, without grouping. It may already be
   * materialized.
   */
  private def shuffleOf(plan: SparkPlan): Option[Shuffle] = plan match {
    case stage: ShuffleQueryStageExec => hashed(stage, stage.shuffle)
    case AQEShuffleReadExec(stage: ShuffleQueryStageExec, _) => hashed(stage, stage.shuffle)
    case shuffle: ShuffleExchangeExec => hashed(shuffle, shuffle)
    case MadeOf(Seq(part)) if part.linear => shuffleOf(part.child)
    case _ => None
  }

  private def hashed(plan: SparkPlan, shuffle: ShuffleExchangeLike): Option[Shuffle] =
    shuffle.outputPartitioning match {
      case by: HashPartitioning => Some(Shuffle(plan, by))
      case _ => None
    }

  /** Whether the rows are partitioned by the whole key. */
  private def isBy(partitioning: HashPartitioning, keys: Seq[Expression]): Boolean =
    keys.forall(k => partitioning.expressions.exists(_.semanticEquals(k)))
}
