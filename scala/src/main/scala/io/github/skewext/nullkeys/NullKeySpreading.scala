package io.github.skewext.nullkeys

import java.util.IdentityHashMap

import io.github.skewext.facts.{ComparedByBytes, StableRows}
import io.github.skewext.join.InputRole
import io.github.skewext.join.exec.{MultiFullJoinExec, MultiJoinExec}
import io.github.skewext.platform.{LogicalLinks, SkewConf}

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.catalyst.plans.physical.{AllTuples, BroadcastDistribution, ClusteredDistribution, Distribution, HashPartitioning, OrderedDistribution, Partitioning, PartitioningCollection, RangePartitioning, SinglePartition, UnspecifiedDistribution}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.exchange._
import org.apache.spark.sql.execution.{GlobalLimitExec, SparkPlan}

/**
 * Spreads the rows with a null key over all tasks of a join, if that has no cost elsewhere. Such
 * rows match nothing, so they may be in any partition. But then the output is no longer partitioned
 * by the key, nulls included. So a join stays unchanged
 *
 *  - below a node that may use its partitions: an aggregate, a window, another join, or a
 *    `repartition` by columns. Adaptive execution may remove nodes in between;
 *  - if an input already has the distribution (a bucketed table, storage partitions), or gets it
 *    from a shuffle of its own (an input that is grouped by the key): it would need another one
 *    ([[NullKeySpreading.saves]]);
 *  - if no key is nullable, or the join returns no row with a null key;
 *  - if another join of the query shuffles an input by the same key: one shuffle serves both.
 */
private[skewext] trait NullKeySpreading extends Rule[SparkPlan] {
  import NullKeySpreading._

  /** Whether the rule may spread rows of a node. Few queries have one. */
  protected def mayApply(node: SparkPlan): Boolean

  /** The join with spread rows, if the rule spreads them. */
  protected def spread(join: SparkPlan, query: Query): Option[SparkPlan]

  protected def isEnabled: Boolean =
    conf.getConf(SkewConf.MULTI_JOIN_SPREAD_NULL_KEYS)

  override def apply(plan: SparkPlan): SparkPlan =
    if (plan.exists(mayApply) && isEnabled) visit(plan, new Query(plan)) else plan

  private def visit(node: SparkPlan, query: Query): SparkPlan = {
    val changed = if (query.isFree(node)) spread(node, query).getOrElse(node) else node
    changed.mapChildren(visit(_, query))
  }

  private def requirements(node: SparkPlan): Seq[Distribution] = node match {
    case shuffle: ShuffleExchangeLike =>
      shuffle.outputPartitioning match {
        // Spark removes a shuffle of the user if the partitions below are the same.
        case HashPartitioning(by, _) if !isRebalance(shuffle) => Seq(ClusteredDistribution(by))
        case _ => Seq(AllTuples)
      }
    case other => other.requiredChildDistribution
  }

  private def isRebalance(shuffle: ShuffleExchangeLike): Boolean = shuffle.shuffleOrigin match {
    case REBALANCE_PARTITIONS_BY_COL | REBALANCE_PARTITIONS_BY_NONE => true
    case _ => false
  }

  /** Whether the join can return a row with a null key. */
  private[skewext] def canComeOut(join: MultiJoinExec): Boolean =
    join.children.indices.exists(i => canComeOut(join.children(i), join.keys(i), join.roles, i))

  protected def canComeOut(
      input: SparkPlan,
      keys: Seq[Expression],
      roles: Seq[InputRole],
      i: Int): Boolean =
    InputRole.emitsNullKeys(roles, i) && nullableKeys(keys, input.output).nonEmpty

  /** A query, and the partitioning of the inputs in it. */
  protected final class Query(whole: SparkPlan) {

    /**
     * The nodes whose partitions no node above uses, by identity, each with the plan below the next
     * planned shuffle above it. The plan of a CTE that Spark computes once has such a shuffle. It
     * occurs several times, also in subqueries, and Spark finds the copies by their equality. So
     * what is above or beside that shuffle decides nothing.
     */
    private val free = new IdentityHashMap[SparkPlan, SparkPlan]
    find(whole, areUsed = false, whole)

    private def find(node: SparkPlan, areUsed: Boolean, part: SparkPlan): Unit = {
      if (!areUsed) free.put(node, part)
      node.children.zip(requirements(node)).foreach { case (child, required) =>
        val used = required match {
          case UnspecifiedDistribution => areUsed
          // Adaptive execution removes the limit if there are fewer rows.
          case AllTuples if node.isInstanceOf[GlobalLimitExec] => areUsed
          // Partitions by hash are in no order, so another shuffle follows.
          case AllTuples | _: BroadcastDistribution | _: OrderedDistribution => false
          case _ => true
        }
        find(child, used, if (node.isInstanceOf[ShuffleExchangeLike]) child else part)
      }
    }

    def isFree(node: SparkPlan): Boolean = free.containsKey(node)

    /** By identity: it takes long to plan the exchanges of an input, and to compare plans. */
    private val partitionings = new IdentityHashMap[SparkPlan, Partitioning]

    def canSpread(join: MultiFullJoinExec): Boolean =
      !join.storagePartitioned && canComeOut(join) && areShuffled(join.children, join.keys)

    /**
     * Whether each input gets a shuffle for the join. An input with a single partition also gets one
     * if others have more. Exchanges are not planned yet.
     */
    def areShuffled(inputs: Seq[SparkPlan], keys: Seq[Seq[Expression]]): Boolean = {
      val come = inputs.map(partitioning)
      come.exists(_ != SinglePartition) && come.zip(keys).forall { case (partitioning, by) =>
        partitioning == SinglePartition || !saves(partitioning, ClusteredDistribution(by))
      }
    }

    /** Whether Spark can reuse the shuffle of an input, if it is by the key alone. */
    def sharesShuffle(join: SparkPlan): Boolean = {
      def shuffles(node: SparkPlan): Seq[(SparkPlan, Seq[Expression])] =
        node.children.zip(node.requiredChildDistribution).collect {
          case (child, by: ClusteredDistribution) =>
            (
              child.canonicalized,
              by.clustering.map(QueryPlan.normalizeExpressions(_, child.output)))
        }
      lazy val own = shuffles(join).toSet
      conf.exchangeReuseEnabled && free.get(join).exists {
        case other if other eq join => false
        case other: MultiFullJoinExec if isFree(other) && canSpread(other) => false
        case other => shuffles(other).exists(own.contains)
      }
    }

    /**
     * The partitioning of an input when its exchanges are planned. Before that, a join of stages with
     * different numbers of partitions has none.
     */
    def partitioning(input: SparkPlan): Partitioning =
      partitionings.computeIfAbsent(input, EnsureRequirements().apply(_).outputPartitioning)

    /**
     * The value that partitions an input, in addition to its key. It is constant for keys without a
     * null, so that equal keys stay together. A row with a null key must go to the same partition
     * when its task is retried, otherwise rows are lost and duplicated. So its partition depends on
     * the task's number, and on the row's content only if that is stable.
     */
    def spreadBy(input: SparkPlan, keys: Seq[Expression]): Expression = {
      val nullable = nullableKeys(keys, input.output)
      partitioning(input) match {
        // The input has already been shuffled in this way, and the query is planned again.
        case HashPartitioning(by :+ (spread: SpreadNulls), _) if by == keys => spread
        case _ if nullable.isEmpty => Literal(0L)
        case _ =>
          val values =
            if (StableRows.areIn(input)) {
              input.output.filter(ComparedByBytes(_)).take(MaxColumns)
            } else {
              Nil
            }
          SpreadNulls(nullable, values)
      }
    }
  }

  /**
   * The keys that are nullable in the current output of the input. A filter may have been added
   * since the keys were resolved.
   */
  private def nullableKeys(keys: Seq[Expression], input: Seq[Attribute]): Seq[Expression] = {
    val known = AttributeMap(input.map(a => a -> a))
    keys.filter(_.transform { case a: Attribute => known.getOrElse(a, a) }.nullable)
  }

  private val MaxColumns = 8
}

private[skewext] object NullKeySpreading {

  /**
   * Whether the partitioning of an input may save its shuffle for a join. Ranges, such as those of
   * `spark.range`, never do: no other input has the same ones.
   */
  def saves(partitioning: Partitioning, required: ClusteredDistribution): Boolean =
    partitioning.satisfies(required) && !isByRange(partitioning)

  private def isByRange(partitioning: Partitioning): Boolean = partitioning match {
    case range: RangePartitioning => range.numPartitions > 1
    case several: PartitioningCollection => several.partitionings.forall(isByRange)
    case _ => false
  }
}

/** Spreads the rows with a null key over all tasks of a multi-way join ([[NullKeySpreading]]). */
object SpreadNullKeys extends NullKeySpreading {

  override protected def mayApply(node: SparkPlan): Boolean = node.isInstanceOf[MultiFullJoinExec]

  override protected def spread(join: SparkPlan, query: Query): Option[SparkPlan] = join match {
    case multi: MultiFullJoinExec if query.canSpread(multi) && !query.sharesShuffle(multi) =>
      Some(
        LogicalLinks.replacing(multi)(
          multi.copy(spreadBy = multi.children.zip(multi.keys).map((query.spreadBy _).tupled))))
    case _ => None
  }
}
