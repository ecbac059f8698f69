package io.github.skewext.join

import io.github.skewext.platform.{Guard, SkewConf}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.BloomFilterAggregate
import org.apache.spark.sql.catalyst.optimizer.{ColumnPruning, ConstantFolding, PushDownPredicates}
import org.apache.spark.sql.catalyst.planning.NodeWithOnlyDeterministicProjectAndFilter
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.{INVOKE, JSON_TO_STRUCT, LIKE_FAMLIY, PLAN_EXPRESSION, PYTHON_UDF, REGEXP_EXTRACT_FAMILY, REGEXP_REPLACE, SCALA_UDF}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.dynamicpruning.{CleanupDynamicPruningFilters, PartitionPruning}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.SparkShims

/**
 * Prunes inputs at run time with the keys of a small, filtered input, the creator. The join does not
 * return keys that the creator lacks, so rows of other inputs with such keys are
 * unnecessary. Spark does the same for its own joins, and the settings are Spark's:
 *
 *  - If a table is partitioned by a key column, only partitions with keys of the creator are read
 *    (`PartitionPruning`).
 *  - Rows whose keys are not in a bloom filter of the creator's keys are not shuffled
 *    (`InjectRuntimeFilter`). All inputs use the same filter.
 *
 * Spark's rules run late in the optimizer, where an extension cannot add a rule, and match only
 * Spark's joins. So the filters are created when the join is planned. The logical plan stays
 * unchanged, because adaptive execution inserts stages of the physical plan into it. Hence only
 * filtered scans are pruned, which contain no stages. The filters are created once and kept on the
 * node: when the query is planned again at run time, their subqueries are already running.
 */
object RuntimeFilters extends PredicateHelper {

  /**
   * Plans an input with its runtime filters, if it has any, and links the plan to the input without
   * them, because that is the node in the logical plan of adaptive execution.
   *
   * @param now whether the plan is necessary before exchanges are planned.
   * @param later plans an input after the join.
   */
  def planned(
      join: PrunedByKeys,
      i: Int,
      now: Boolean,
      later: LogicalPlan => SparkPlan): SparkPlan = {
    val input = join.children(i)
    val withFilters = filtered(join, i, broadcastTo = None)
    if (!now && (withFilters eq input)) {
      later(input)
    } else {
      val plan = SparkSession.active.sessionState.planner.plan(withFilters).next()
      plan.setLogicalLink(input)
      plan
    }
  }

  /**
   * The plan of an input with its runtime filters.
   *
   * @param broadcastTo the input to which all others are broadcast, if there is one; then nothing
   *                    is shuffled.
   */
  def filtered(join: PrunedByKeys, i: Int, broadcastTo: Option[Int]): LogicalPlan = {
    val input = join.children(i)
    filters(join, broadcastTo).getOrElse(i, Nil) match {
      case predicates if predicates.nonEmpty && isScan(input) =>
        below(Filter(predicates.reduce(And), input))
      case _ => input
    }
  }

  private def filters(join: PrunedByKeys, broadcastTo: Option[Int]): Map[Int, Seq[Expression]] =
    PlannerChoices.of(join).filters.getOrElse {
      val made = Guard.protect("making runtime filters", Map.empty[Int, Seq[Expression]]) {
        // Adaptive execution knows the subqueries of its first plan only.
        if (join.exists(_.isInstanceOf[LogicalQueryStage])) Map.empty else make(join, broadcastTo)
      }
      PlannerChoices.set(join, PlannerChoices.of(join).copy(filters = Some(made)))
      made
    }

  private def make(join: PrunedByKeys, broadcastTo: Option[Int]): Map[Int, Seq[Expression]] = {
    val conf = SQLConf.get
    val creators = join.children.indices
      .filter(i => join.isNeeded(i) && isCreator(creatorOf(join, i), join.keys(i)))
      .sortBy(size(join, _))
    if (creators.isEmpty || !conf.getConf(SkewConf.MULTI_JOIN_RUNTIME_FILTER)) {
      Map.empty
    } else {
      val targets =
        broadcastTo
          .fold[Seq[Int]](join.children.indices)(Seq(_))
          .filter(i => isScan(join.children(i)))
      // If two inputs are creators, the smaller one prunes the larger one. A creator prunes other
      // inputs whatever their size, because estimated sizes hardly reflect filters.
      def larger(creator: Int): Seq[Int] =
        targets.filter(i => !creators.contains(i) || size(join, i) > size(join, creator))
      val ofPartitions = for {
        creator <- creators
        i <- larger(creator)
        j <- join.exactKeys
        filter <- partitionFilter(join, i, creator, j, broadcastTo.isDefined)
      } yield (i, j, filter)
      val isPruned = ofPartitions.map { case (i, j, _) => (i, j) }.toSet
      val asked = for {
        creator <- creators if broadcastTo.isEmpty && isSmall(creatorOf(join, creator))
        j <- join.exactKeys
        large = larger(creator).filter(i => isLarge(join.children(i)) && !isPruned((i, j)))
        if large.nonEmpty
      } yield (creator, j, large)
      val ofRows = for {
        (creator, j, large) <- asked.take(conf.getConf(SQLConf.RUNTIME_FILTER_NUMBER_THRESHOLD))
        bloom = bloomFilter(creatorOf(join, creator), join.keys(creator)(j))
        i <- large
      } yield (i, BloomFilterMightContain(bloom, new XxHash64(Seq(join.keys(i)(j)))))
      (ofPartitions.map { case (i, _, filter) => (i, filter) } ++ ofRows)
        .groupBy(_._1)
        .map { case (i, found) => i -> found.map(_._2) }
    }
  }

  private def size(join: PrunedByKeys, i: Int): BigInt = creatorOf(join, i).stats.sizeInBytes

  /** The input without a limit that was pushed into it. It has the keys of more rows. */
  private def creatorOf(join: PrunedByKeys, i: Int): LogicalPlan = join.children(i) match {
    case LocalLimit(_, all) => all
    case input => input
  }

  /** Whether the plan reads one table, with filters and computed columns. */
  private def isScan(plan: LogicalPlan): Boolean = plan match {
    case NodeWithOnlyDeterministicProjectAndFilter(leaf) =>
      leaf match {
        case _: LogicalQueryStage | _: InMemoryRelation | _: LocalRelation => false
        case _: LeafNode => true
        case _ => false
      }
    case _ => false
  }

  /**
   * Whether the plan filters the rows of a table, with expressions that are cheap to compute again.
   * Filters on keys alone do not count, because they have been added to all inputs.
   */
  private def isCreator(plan: LogicalPlan, keys: Seq[Expression]): Boolean = {
    val ofKeys = AttributeSet(keys)
    val conditions = plan.collect { case Filter(condition, _) => condition }
    isScan(plan) && !plan.isStreaming &&
    conditions.flatMap(splitConjunctivePredicates).exists { condition =>
      isLikelySelective(condition) && !condition.references.subsetOf(ofKeys)
    } &&
    !plan.exists(!_.expressions.forall(isCheap))
  }

  private def isCheap(e: Expression): Boolean = !e.containsAnyPattern(
    PLAN_EXPRESSION,
    PYTHON_UDF,
    SCALA_UDF,
    INVOKE,
    JSON_TO_STRUCT,
    LIKE_FAMLIY,
    REGEXP_EXTRACT_FAMILY,
    REGEXP_REPLACE)

  private def isSmall(plan: LogicalPlan): Boolean = {
    val conf = SQLConf.get
    conf.runtimeFilterBloomFilterEnabled &&
    plan.stats.sizeInBytes <= conf.runtimeFilterCreationSideThreshold
  }

  private def isLarge(plan: LogicalPlan): Boolean = {
    val conf = SQLConf.get
    val size = scanSize(plan)
    // Spark uses this size for tables whose size is unknown.
    size != conf.defaultSizeInBytes &&
    size >= conf.getConf(SQLConf.RUNTIME_BLOOM_FILTER_APPLICATION_SIDE_SCAN_SIZE_THRESHOLD)
  }

  private def scanSize(plan: LogicalPlan): BigInt =
    plan.collectLeaves().map(_.stats.sizeInBytes).sum

  private def bloomFilter(creator: LogicalPlan, key: Expression): ScalarSubquery = {
    val hash = new XxHash64(Seq(key))
    val bloom = creator.stats.rowCount.filter(_ > 0) match {
      case Some(rows) => new BloomFilterAggregate(hash, rows.toLong)
      case None => new BloomFilterAggregate(hash)
    }
    val made = Aggregate(Nil, Seq(Alias(bloom.toAggregateExpression(), "filter")()), creator)
    ScalarSubquery(ConstantFolding(ColumnPruning(made)), Nil)
  }

  /**
   * @param isBroadcast whether the creator is broadcast, so that its keys can be read from there.
   */
  private def partitionFilter(
      join: PrunedByKeys,
      i: Int,
      creator: Int,
      j: Int,
      isBroadcast: Boolean): Option[Expression] = {
    val conf = SQLConf.get
    val key = join.keys(i)(j)
    for {
      _ <- Some(()) if conf.dynamicPartitionPruningEnabled
      scan <- PartitionPruning.getFilterableTableScan(key, join.children(i))
      isWorthIt = !conf.dynamicPartitionPruningReuseBroadcastOnly &&
        savesMore(creatorOf(join, creator), join.keys(creator)(j), scan, key)
      if isWorthIt || (isBroadcast && conf.exchangeReuseEnabled)
    } yield SparkShims.dynamicPruning(
      key,
      creatorOf(join, creator),
      join.keys(creator),
      j,
      onlyInBroadcast = !isWorthIt)
  }

  /** Whether skipping partitions saves more than another read of the creator costs. */
  private def savesMore(
      creator: LogicalPlan,
      creatorKey: Expression,
      scan: LogicalPlan,
      key: Expression): Boolean = {
    val conf = SQLConf.get
    def distinct(e: Expression, plan: LogicalPlan): Option[BigDecimal] = e match {
      case a: Attribute if conf.dynamicPartitionPruningUseStats =>
        plan.stats.attributeStats.get(a).flatMap(_.distinctCount).map(BigDecimal(_))
      case _ => None
    }
    val known = for {
      all <- distinct(key, scan)
      wanted <- distinct(creatorKey, creator) if wanted < all
    } yield 1 - wanted / all
    val share = known.getOrElse(BigDecimal(conf.dynamicPartitionPruningFallbackFilterRatio))
    share * BigDecimal(scan.stats.sizeInBytes) >
      BigDecimal(scanSize(creator))
  }

  /** Pushes the filter down to the scan. */
  private def below(filter: Filter): LogicalPlan = {
    val pushed = Iterator
      .iterate((filter: LogicalPlan, true)) { case (plan, _) =>
        val next = PushDownPredicates(plan)
        (next, !next.fastEquals(plan))
      }
      .dropWhile(_._2)
      .next()
      ._1
    CleanupDynamicPruningFilters(pushed)
  }
}

/** A join whose inputs [[RuntimeFilters]] prunes. */
private[skewext] trait PrunedByKeys extends LogicalPlan {

  /** The compared expressions of each input. */
  def keys: Seq[Seq[Expression]]

  /** The positions of key columns whose equal values are identical. */
  def exactKeys: Seq[Int]

  /** Whether the result has no key that this input lacks. */
  def isNeeded(input: Int): Boolean
}
