package io.github.skewext.merge

import io.github.skewext.facts.{BuiltinShuffledJoin, JoinHints}
import io.github.skewext.join.InputRole
import io.github.skewext.nullkeys.{NullKeySpreading, SpreadNullKeys, SpreadNulls}
import io.github.skewext.platform.{LogicalLinks, SkewConf}

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical.{ClusteredDistribution, HashPartitioning}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange._
import org.apache.spark.sql.execution.joins.ShuffledJoin

/**
 * Spreads the source rows of a MERGE that have a null key, if the source must not be split
 * ([[JoinHints]]). The join gets one more pair of keys. Both are 0, except for source rows that
 * match nothing ([[NullKeySpreading]]).
 * {{{
 * SortMergeJoin [k], [k], FullOuter   =>   SortMergeJoin [k, 0], [k, spreadnulls(k)], FullOuter
 * }}}
 */
object SpreadSourceNullKeys extends NullKeySpreading {

  /** Excluding the rule for multi-way joins excludes this one, too: they were one rule. */
  override protected def isEnabled: Boolean =
    super.isEnabled && !SkewConf.excludes(conf, SpreadNullKeys.ruleName)

  override protected def mayApply(node: SparkPlan): Boolean = node match {
    case BuiltinShuffledJoin(join) => JoinHints.forbidsReplication(join)
    case _ => false
  }

  override protected def spread(join: SparkPlan, query: Query): Option[SparkPlan] = join match {
    case BuiltinShuffledJoin(shuffled) =>
      sourceToSpread(shuffled, query)
        .filterNot(_ => query.sharesShuffle(shuffled))
        .map(spreadSource(shuffled, _, query))
    case _ => None
  }

  /**
   * The side that is the source of a MERGE and must not be split, if the join returns its rows with
   * a null key.
   */
  private[skewext] def sourceWithoutKeys(join: ShuffledJoin): Option[Int] = for {
    source <- JoinHints.mayReplicate(join) match {
      case (false, true) => Some(1)
      case (true, false) => Some(0)
      case _ => None
    }
    (left, right) <- InputRole.ofSides(join.joinType)
    keys = if (source == 0) join.leftKeys else join.rightKeys
    if canComeOut(join.children(source), keys, Seq(left, right), source)
  } yield source

  private def sourceToSpread(join: ShuffledJoin, query: Query): Option[Int] =
    sourceWithoutKeys(join).filter { _ =>
      query.areShuffled(Seq(join.left, join.right), Seq(join.leftKeys, join.rightKeys))
    }

  /**
   * Adds the shuffle of the source, by the hash that spreads its rows. Spark would shuffle by the
   * keys of the join, by which it also sorts.
   */
  private def spreadSource(join: ShuffledJoin, source: Int, query: Query): SparkPlan = {
    def side(i: Int, input: SparkPlan, keys: Seq[Expression]): (SparkPlan, Seq[Expression]) =
      if (i == source) {
        query.spreadBy(input, keys) match {
          case spread: SpreadNulls =>
            (shuffled(input, keys :+ spread, query), keys :+ spread.settled)
          case constant => (input, keys :+ constant)
        }
      } else {
        (input, keys :+ Literal(0L))
      }
    val (left, leftKeys) = side(0, join.left, join.leftKeys)
    val (right, rightKeys) = side(1, join.right, join.rightKeys)
    LogicalLinks.replacing[SparkPlan](join)(
      BuiltinShuffledJoin.withParts(join)(leftKeys, rightKeys, left, right))
  }

  private def shuffled(input: SparkPlan, by: Seq[Expression], query: Query): SparkPlan =
    if (NullKeySpreading.saves(query.partitioning(input), ClusteredDistribution(by))) input
    else ShuffleExchangeExec(HashPartitioning(by, conf.numShufflePartitions), input)
}
