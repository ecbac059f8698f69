package io.github.skewext.bucket

import io.github.skewext.multijoin.MultiFullJoinExec
import io.github.skewext.{GuardedRule, SkewConf}

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.optimizer.BuildLeft
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, ReturnAnswer}
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, ShuffledHashJoinExec, SortMergeJoinExec}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.{SparkSession, Strategy}

/**
 * Reads bucketed tables in fewer partitions where they are joined with tables of fewer buckets, so
 * that nothing is shuffled, or less. Spark does so for joins of two tables, if told to
 * (`spark.sql.bucketing.coalesceBucketsInJoin.enabled`); if that is said, of either, its joins are
 * left to it. [[BucketCounts]] decides.
 *
 * It runs before exchanges are planned, which then does the rest. Of joins one above the other it
 * begins with the lowest.
 */
object CoalesceBuckets extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan =
    if (isOn(conf)) {
      plan.transformUp {
        case join: MultiFullJoinExec => coalesce(join, join.keys, join.children.indices)
        case join: SortMergeJoinExec if !isSaid =>
          coalesce(join, Seq(join.leftKeys, join.rightKeys), Seq(0, 1))
        case join: ShuffledHashJoinExec if !isSaid =>
          // The other side's buckets are hash tables: larger ones may not fit into memory.
          val streamed = if (join.buildSide == BuildLeft) 1 else 0
          coalesce(join, Seq(join.leftKeys, join.rightKeys), Seq(streamed))
      }
    } else {
      plan
    }

  private def isOn(conf: SQLConf): Boolean =
    SkewConf.enabled(conf) && conf.getConf(SkewConf.BUCKET_COALESCE) && conf.bucketingEnabled

  private def isSaid: Boolean = conf.contains(SQLConf.COALESCE_BUCKETS_IN_JOIN_ENABLED.key)

  /** Looks at what is below only where there is something to change: long chains have much of it. */
  private def coalesce(join: SparkPlan, keys: Seq[Seq[Expression]], may: Seq[Int]): SparkPlan =
    if (join.children.exists(scanOf(_).isDefined)) coalesceScans(join, keys, may) else join

  private def coalesceScans(
      join: SparkPlan,
      keys: Seq[Seq[Expression]],
      may: Seq[Int]): SparkPlan = {
    val inputs = join.children.zip(keys).zipWithIndex.map { case ((child, key), i) =>
      inputOf(child, key, may.contains(i))
    }
    val known = inputs.flatten
    decide(join, keys, inputs) match {
      case Right(count) =>
        join.withNewChildren(join.children.zip(known).map { case (child, input) =>
          input.scan.fold(child)(inPartitions(count, child, input.input, _))
        })
      case Left(reason) =>
        // When a shuffle is done, adaptive execution plans again, and all have the same number.
        if (known.flatMap(_.input.count).distinct.size > 1) {
          known.flatMap(_.scan).foreach(BucketReason.setNotCoalesced(_, reason))
        }
        join
    }
  }

  private def decide(
      join: SparkPlan,
      keys: Seq[Seq[Expression]],
      inputs: Seq[Option[Known]]): Either[BucketReason, Int] = {
    val orders = inputs.flatten.flatMap(_.keyOrder).distinct
    val inOrder = join match {
      case _: MultiFullJoinExec => orders == Seq(keys.head.indices)
      case _ => orders.size == 1
    }
    def choose(cores: Int): Option[Int] = BucketCounts.choose(
      inputs.flatten.map(_.input),
      conf.coalesceBucketsInJoinMaxBucketRatio,
      cores)
    if (inputs.exists(_.isEmpty)) {
      Left(BucketReason.OtherPartitions)
    } else if (!inOrder) {
      Left(BucketReason.KeyOrder)
    } else {
      choose(SparkSession.active.sparkContext.defaultParallelism) match {
        case Some(count) => Right(count)
        case None if choose(cores = 1).isDefined => Left(BucketReason.FewTasks)
        case None => Left(BucketReason.CountsApart)
      }
    }
  }

  private def inPartitions(
      count: Int,
      child: SparkPlan,
      input: BucketCounts.Input,
      scan: FileSourceScanExec): SparkPlan = {
    val fits = input.fits(count, conf.coalesceBucketsInJoinMaxBucketRatio)
    if (input.count.contains(count) || input.count.isEmpty) {
      child
    } else if (fits) {
      withScan(child, BucketedScan.inPartitions(scan, scan.relation.bucketSpec.get, count))
    } else {
      BucketReason.setNotCoalesced(scan, BucketReason.CountsApart)
      // It is shuffled. The larger number of partitions would be taken for all.
      if (input.count.exists(_ > count)) withScan(child, scan.copy(disableBucketedScan = true))
      else child
    }
  }

  /** There is one scan on the way down, and what is broadcast to it has others. */
  private def withScan(node: SparkPlan, scan: FileSourceScanExec): SparkPlan = node match {
    case before: FileSourceScanExec =>
      scan.copyTagsFrom(before)
      scan
    case other =>
      val next = wayDown(other).get
      other.withNewChildren(other.children.map(c => if (c eq next) withScan(c, scan) else c))
  }

  /** @param keyOrder which of the join's keys its partitions are by */
  private case class Known(
      input: BucketCounts.Input,
      keyOrder: Option[Seq[Int]],
      scan: Option[FileSourceScanExec])

  /** None where the input may bring partitions of its own, which are not planned yet. */
  private def inputOf(child: SparkPlan, key: Seq[Expression], mayDivide: Boolean): Option[Known] = {
    if (isPlanned(child)) {
      val partitions = partitionsBy(child.outputPartitioning, key)
      val size = child.logicalLink.fold(BigInt(1))(_.stats.sizeInBytes)
      val scan = scanOf(child).filter(_ => mayDivide)
      val input = BucketCounts.Input(
        partitions.map(_._2),
        divides = scan.isDefined,
        canForget = scan.isDefined && !child.exists(needsKeysTogether),
        isDone = isShuffled(child),
        size)
      Some(Known(input, partitions.map(_._1), scan))
    } else {
      None
    }
  }

  private def partitionsBy(p: Partitioning, key: Seq[Expression]): Option[(Seq[Int], Int)] =
    p match {
      case HashPartitioning(by, n) =>
        val order = by.map(e => key.indexWhere(_.semanticEquals(e)))
        if (order.sorted == key.indices) Some((order, n)) else None
      case PartitioningCollection(all) => all.flatMap(partitionsBy(_, key)).headOption
      case _ => None
    }

  private def scanOf(node: SparkPlan): Option[FileSourceScanExec] = node match {
    case scan @ BucketedScan(_) if scan.bucketedScan && scan.optionalNumCoalescedBuckets.isEmpty =>
      Some(scan)
    case other => wayDown(other).flatMap(scanOf)
  }

  /** The child that a node has its partitions from. */
  private def wayDown(node: SparkPlan): Option[SparkPlan] = node match {
    case _: ProjectExec | _: FilterExec | _: BaseAggregateExec => node.children.headOption
    case SortExec(_, false, child, _) => Some(child)
    case join: BroadcastHashJoinExec =>
      Some(if (join.buildSide == BuildLeft) join.right else join.left)
    case _ => None
  }

  /** Whether it has been shuffled for the join, and not for something below. */
  private def isShuffled(node: SparkPlan): Boolean = node match {
    case _: ShuffleQueryStageExec => true
    case _: ProjectExec | _: FilterExec | _: SortExec => isShuffled(node.children.head)
    case _ => false
  }

  private def needsKeysTogether(node: SparkPlan): Boolean =
    node.requiredChildDistribution.exists(_.isInstanceOf[ClusteredDistribution])

  /**
   * Whether no exchange comes between the nodes, but what is broadcast. A join that is yet to be
   * shuffled cannot say what its partitions are, so what is below is looked at first.
   */
  private def isPlanned(node: SparkPlan): Boolean = {
    val required = node.requiredChildDistribution.zip(node.children)
    val satisfied = required.forall {
      case (_: BroadcastDistribution, _) => true
      case (distribution, child) =>
        isPlanned(child) && child.outputPartitioning.satisfies(distribution)
    }
    satisfied && {
      val together = required.collect { case (_: ClusteredDistribution, child) => child }
      together.map(_.outputPartitioning.numPartitions).distinct.size <= 1
    }
  }

  /**
   * In plans that are not adaptive there is no place for a rule before exchanges are planned, but
   * for a strategy that sees the whole query: it has the planner plan it, and looks at the result.
   */
  object InStaticPlans extends Strategy {

    private val rule = GuardedRule(CoalesceBuckets)

    private val planning = ThreadLocal.withInitial[Boolean](() => false)

    override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
      case answer: ReturnAnswer if !planning.get && mayCoalesce(answer) =>
        planning.set(true)
        // What goes wrong in here but the rule goes wrong without us as well.
        try Seq(rule(SparkSession.active.sessionState.planner.plan(answer).next()))
        finally planning.remove()
      case _ => Nil
    }

    private def mayCoalesce(plan: LogicalPlan): Boolean = {
      val conf = SQLConf.get
      !conf.adaptiveExecutionEnabled && isOn(conf) && counts(plan).distinct.size > 1
    }

    private def counts(plan: LogicalPlan): Seq[Int] = plan.collect {
      case LogicalRelation(files: HadoopFsRelation, _, _, _) => files.bucketSpec.map(_.numBuckets)
    }.flatten
  }
}
