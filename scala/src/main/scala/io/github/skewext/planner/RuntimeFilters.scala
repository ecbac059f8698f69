package io.github.skewext.planner

import io.github.skewext.internal.{Guard, SkewConf}
import io.github.skewext.plan.InputRole.Required
import io.github.skewext.plan.MultiFullJoin

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.BloomFilterAggregate
import org.apache.spark.sql.catalyst.optimizer.{ColumnPruning, ConstantFolding, PushDownPredicates}
import org.apache.spark.sql.catalyst.planning.NodeWithOnlyDeterministicProjectAndFilter
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.{INVOKE, JSON_TO_STRUCT, LIKE_FAMLIY, PLAN_EXPRESSION, PYTHON_UDF, REGEXP_EXTRACT_FAMILY, REGEXP_REPLACE, SCALA_UDF}
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.dynamicpruning.{CleanupDynamicPruningFilters, PartitionPruning}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.SparkShims

/**
 * What is asked of inputs while the query runs. A key that a required input lacks does not come out,
 * so the keys of a small one that is filtered tell which rows of the others are not needed. As Spark
 * does for its own joins, under the settings that it has for that:
 *
 *  - Of a table that is partitioned by a key column only partitions of such keys are read
 *    (`PartitionPruning`).
 *  - Rows whose keys are not in a bloom filter of such keys are not shuffled
 *    (`InjectRuntimeFilter`). All inputs ask the same one.
 *
 * Spark's rules run late in the optimizer, where nothing can be added, and see Spark's joins only. So
 * this is done when the join is planned. The logical plan stays as it is, since adaptive execution puts
 * the stages of the physical one into it; hence only inputs that are read and filtered, in which there
 * are no stages. The filters are made once and kept on the node: when the plan is made anew, while
 * the query runs, their subqueries are running already.
 */
object RuntimeFilters extends PredicateHelper {

  /**
   * The plan of an input with what is asked of it.
   *
   * @param broadcastTo the input that all others are broadcast to, if they are: then nothing is shuffled
   */
  def filtered(join: MultiFullJoin, i: Int, broadcastTo: Option[Int]): LogicalPlan = {
    val input = join.children(i)
    filters(join, broadcastTo).getOrElse(i, Nil) match {
      case predicates if predicates.nonEmpty && isScan(input) =>
        below(Filter(predicates.reduce(And), input))
      case _ => input
    }
  }

  private def filters(join: MultiFullJoin, broadcastTo: Option[Int]): Map[Int, Seq[Expression]] =
    join.getTagValue(MultiFullJoin.RuntimeFilters).getOrElse {
      val made = Guard.protect("making runtime filters", Map.empty[Int, Seq[Expression]]) {
        make(join, broadcastTo)
      }
      join.setTagValue(MultiFullJoin.RuntimeFilters, made)
      made
    }

  private def make(join: MultiFullJoin, broadcastTo: Option[Int]): Map[Int, Seq[Expression]] = {
    val conf = SQLConf.get
    val creators = join.children.indices
      .filter(i => join.roles(i) == Required && isCreator(join.children(i), join.keys(i)))
      .sortBy(size(join, _))
    if (creators.isEmpty || !conf.getConf(SkewConf.MULTI_JOIN_RUNTIME_FILTER)) {
      Map.empty
    } else {
      val targets =
        broadcastTo
          .fold[Seq[Int]](join.children.indices)(Seq(_))
          .filter(i => isScan(join.children(i)))
      // Of inputs that could both, the smaller one says what is read of the larger one. Sizes know
      // little of conditions, so they say nothing of an input that has none.
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
        creator <- creators if broadcastTo.isEmpty && isSmall(join.children(creator))
        j <- join.exactKeys
        large = larger(creator).filter(i => isLarge(join.children(i)) && !isPruned((i, j)))
        if large.nonEmpty
      } yield (creator, j, large)
      val ofRows = for {
        (creator, j, large) <- asked.take(conf.getConf(SQLConf.RUNTIME_FILTER_NUMBER_THRESHOLD))
        bloom = bloomFilter(join.children(creator), join.keys(creator)(j))
        i <- large
      } yield (i, j, BloomFilterMightContain(bloom, new XxHash64(Seq(join.keys(i)(j)))))
      (ofPartitions ++ ofRows).groupBy(_._1).map { case (i, found) => i -> found.map(_._3) }
    }
  }

  private def size(join: MultiFullJoin, i: Int): BigInt = join.children(i).stats.sizeInBytes

  /** Whether the rows of the plan are those of one table, with conditions and computed columns. */
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
   * Whether the plan has a part of the table's rows, by conditions that are cheap to compute again.
   * What is said of keys alone has been said of all inputs.
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
    // This size is said of tables of which nothing is known.
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
    val made = Alias(bloom.toAggregateExpression(), "bloomFilter")()
    ScalarSubquery(ConstantFolding(ColumnPruning(Aggregate(Nil, Seq(made), creator))), Nil)
  }

  /**
   * @param isBroadcast whether the creator is broadcast, and its keys can be had from there
   */
  private def partitionFilter(
      join: MultiFullJoin,
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
        savesMore(join.children(creator), join.keys(creator)(j), scan, key)
      if isWorthIt || (isBroadcast && conf.exchangeReuseEnabled)
    } yield SparkShims.dynamicPruning(
      key,
      join.children(creator),
      join.keys(creator),
      j,
      onlyInBroadcast = !isWorthIt)
  }

  /** Whether not to read partitions saves more than it costs to read the creator once more. */
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

  /** The filter where the scan sees it. */
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
