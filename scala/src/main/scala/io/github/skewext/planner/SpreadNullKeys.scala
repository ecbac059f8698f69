package io.github.skewext.planner

import io.github.skewext.execution.{MultiFullJoinExec, MultiJoinExec, SparksShuffledJoin}
import io.github.skewext.internal.{LogicalLinks, SkewConf}
import io.github.skewext.plan._

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.catalyst.plans.physical.{AllTuples, BroadcastDistribution, ClusteredDistribution, HashPartitioning, SinglePartition, UnspecifiedDistribution}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange._
import org.apache.spark.sql.execution.joins.{ShuffledHashJoinExec, ShuffledJoin, SortMergeJoinExec}

/**
 * Tells a join to spread its rows with a null key over all tasks, where that costs nobody anything.
 * Such rows match nothing, so they may be in any partition; but then the output is no longer
 * partitioned by the key, nulls included. So a join stays as it is
 *
 *  - below a node that needs a distribution (a group-by, a window, another join) or a shuffle that
 *    the user asked for: what is there may be without a shuffle of its own thanks to this join;
 *  - where an input has the distribution already (a bucketed table, storage partitions), or gets it
 *    from a shuffle of its own (an input that is grouped by the key): it would need one more;
 *  - where no key can be null, or no row with a null key comes out;
 *  - where another join of the query has an input shuffled by the same key: one shuffle does for both.
 *
 * Of Spark's joins it is that of a MERGE, whose source must not be split ([[JoinHints]]): it gets one
 * more pair of keys, which is 0 and 0 but for rows of the source that match nothing.
 * {{{
 * SortMergeJoin [k], [k], FullOuter   =>   SortMergeJoin [k, 0], [k, spreadnulls(k)], FullOuter
 * }}}
 */
object SpreadNullKeys extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan =
    if (SkewConf.enabled(conf) && conf.getConf(SkewConf.MULTI_JOIN_SPREAD_NULL_KEYS)) {
      spread(plan, plan)
    } else {
      plan
    }

  private def spread(plan: SparkPlan, whole: SparkPlan): SparkPlan = plan match {
    case join: MultiFullJoinExec if canSpread(join) && !sharesShuffle(join, whole) =>
      LogicalLinks.replacing(join)(
        join.copy(spreadBy = join.children.zip(join.keys).map((spreadBy _).tupled)))
    case SparksShuffledJoin(join) =>
      sourceToSpread(join)
        .filterNot(_ => sharesShuffle(join, whole))
        .fold(plan)(spreadSource(join, _))
    // Never left out, whatever the partitions below are.
    case shuffle: ShuffleExchangeExec if isRebalance(shuffle) =>
      shuffle.mapChildren(spread(_, whole))
    // Joins further below are left alone: this one, or whatever the node is, may build on them.
    case _: ShuffleExchangeLike => plan
    case node if node.requiredChildDistribution.forall(ignoresPartitioning(_)) =>
      node.mapChildren(spread(_, whole))
    case node => node
  }

  /** Whether a row with a null key can come out of the join. */
  private[skewext] def canComeOut(join: MultiJoinExec): Boolean =
    join.children.indices.exists(i => canComeOut(join.children(i), join.keys(i), join.roles, i))

  private def canComeOut(
      input: SparkPlan,
      keys: Seq[Expression],
      roles: Seq[InputRole],
      i: Int): Boolean =
    InputRole.emitsNullKeys(roles, i) && nullableKeys(keys, input.output).nonEmpty

  /** Which side is the source of a MERGE that must not be split, if its rows without a key come out. */
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

  private def ignoresPartitioning(distribution: Any): Boolean = distribution match {
    case UnspecifiedDistribution | AllTuples | _: BroadcastDistribution => true
    case _ => false
  }

  private def isRebalance(shuffle: ShuffleExchangeExec): Boolean = shuffle.shuffleOrigin match {
    case REBALANCE_PARTITIONS_BY_COL | REBALANCE_PARTITIONS_BY_NONE => true
    case _ => false
  }

  private def canSpread(join: MultiFullJoinExec): Boolean =
    !join.storagePartitioned && canComeOut(join) && areShuffled(join.children, join.keys)

  private def sourceToSpread(join: ShuffledJoin): Option[Int] =
    sourceWithoutKeys(join).filter { _ =>
      areShuffled(Seq(join.left, join.right), Seq(join.leftKeys, join.rightKeys))
    }

  /**
   * Whether each input gets a shuffle for the join, as one of a single partition does where others have
   * more. Exchanges are not planned yet.
   */
  private def areShuffled(inputs: Seq[SparkPlan], keys: Seq[Seq[Expression]]): Boolean = {
    val come = inputs.map(EnsureRequirements().apply(_).outputPartitioning)
    come.exists(_ != SinglePartition) && come.zip(keys).forall { case (partitioning, by) =>
      partitioning == SinglePartition || !partitioning.satisfies(ClusteredDistribution(by))
    }
  }

  /**
   * The source is shuffled here, by what its rows hash to; Spark would do it by the keys of the join, by
   * which it sorts as well.
   */
  private def spreadSource(join: ShuffledJoin, source: Int): SparkPlan = {
    def side(i: Int, input: SparkPlan, keys: Seq[Expression]): (SparkPlan, Seq[Expression]) =
      if (i == source) {
        spreadBy(input, keys) match {
          case spread: SpreadNulls => (shuffled(input, keys :+ spread), keys :+ spread.settled)
          case constant => (input, keys :+ constant)
        }
      } else {
        (input, keys :+ Literal(0L))
      }
    val (left, leftKeys) = side(0, join.left, join.leftKeys)
    val (right, rightKeys) = side(1, join.right, join.rightKeys)
    LogicalLinks.replacing[SparkPlan](join)(join match {
      case j: SortMergeJoinExec =>
        j.copy(leftKeys = leftKeys, rightKeys = rightKeys, left = left, right = right)
      case j: ShuffledHashJoinExec =>
        j.copy(leftKeys = leftKeys, rightKeys = rightKeys, left = left, right = right)
    })
  }

  private def shuffled(input: SparkPlan, by: Seq[Expression]): SparkPlan =
    if (input.outputPartitioning.satisfies(ClusteredDistribution(by))) input
    else ShuffleExchangeExec(HashPartitioning(by, conf.numShufflePartitions), input)

  /** Whether Spark will use the shuffle of an input again, if it goes by the key alone. */
  private def sharesShuffle(join: SparkPlan, whole: SparkPlan): Boolean = {
    def shuffles(node: SparkPlan): Seq[(SparkPlan, Seq[Expression])] =
      node.children.zip(node.requiredChildDistribution).collect {
        case (child, by: ClusteredDistribution) =>
          (child.canonicalized, by.clustering.map(QueryPlan.normalizeExpressions(_, child.output)))
      }
    lazy val own = shuffles(join).toSet
    conf.exchangeReuseEnabled && whole.exists {
      case other if other eq join => false
      case other: MultiFullJoinExec if canSpread(other) => false
      case other => shuffles(other).exists(own.contains)
    }
  }

  /**
   * What to partition an input by besides its key: constant for keys without a null, so that equal
   * keys stay together. Of the others each must go where it went before when its task runs again, or
   * rows are lost and doubled. So their place depends on the task alone, and on what is in the row if
   * that is sure to be there again.
   */
  private def spreadBy(input: SparkPlan, keys: Seq[Expression]): Expression = {
    val nullable = nullableKeys(keys, input.output)
    input.outputPartitioning match {
      // It has been shuffled so, and the plan is made anew.
      case HashPartitioning(by :+ (spread: SpreadNulls), _) if by == keys => spread
      case _ if nullable.isEmpty => Literal(0L)
      case _ =>
        val values =
          if (StableRows.areIn(input)) {
            input.output.filter(KeyTypes.comparedByBytes(_)).take(MaxColumns)
          } else {
            Nil
          }
        SpreadNulls(nullable, values)
    }
  }

  /** By what the input says today: a filter may have come between since the keys were resolved. */
  private def nullableKeys(keys: Seq[Expression], input: Seq[Attribute]): Seq[Expression] = {
    val known = AttributeMap(input.map(a => a -> a))
    keys.filter(_.transform { case a: Attribute => known.getOrElse(a, a) }.nullable)
  }

  private val MaxColumns = 8
}
