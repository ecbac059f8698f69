package io.github.skewext.join.probe

import io.github.skewext.facts.{BuiltinShuffledJoin, EvaluatedInTurn, KeepsStableRows, MadeOf, OwnShuffledJoin}
import io.github.skewext.join.exec.SpineJoinExec
import io.github.skewext.join.range.RangeMatch
import io.github.skewext.platform.SkewConf
import io.github.skewext.rows.{GroupingSettings, JoinKeys, TaskOutput}
import io.github.skewext.shuffle.ReadsColumns

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.{JoinType, LeftExistence}
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, AdaptiveSparkPlanExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.exchange.Exchange
import org.apache.spark.sql.execution.joins.ShuffledJoin
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.skewext.{MultiZipRDD, SqlInternals}

/**
 * Joins two sides that are partitioned by their keys. In each task, the rows of the smaller side are
 * built into a table in memory, and the other side streams through. Either side can be built for
 * any join type. If the build side does not fit into memory, both sides are sorted.
 *
 * In contrast to Spark's sort-merge join, no side is sorted. In contrast to its shuffled hash join,
 * memory is accounted for, the build side is chosen by each task, and a side that is too large
 * spills.
 */
case class BuildProbeJoinExec(
    leftKeys: Seq[Expression],
    rightKeys: Seq[Expression],
    joinType: JoinType,
    condition: Option[Expression],
    left: SparkPlan,
    right: SparkPlan,
    isSkewJoin: Boolean = false)
    extends OwnShuffledJoin
    with PairCodegen
    with KeepsStableRows
    with ReadsColumns {

  override def nodeName: String =
    if (isSkewJoin) s"${BuildProbeJoinExec.Name}(skew=true)" else BuildProbeJoinExec.Name

  override def withParts(
      leftKeys: Seq[Expression],
      rightKeys: Seq[Expression],
      left: SparkPlan,
      right: SparkPlan,
      isSkewJoin: Boolean): ShuffledJoin =
    copy(leftKeys, rightKeys, joinType, condition, left, right, isSkewJoin)

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"),
    "numBuildRows" -> SQLMetrics.createMetric(sparkContext, "number of build rows"),
    "buildDataSize" -> SQLMetrics.createSizeMetric(sparkContext, "data size of build side"),
    "numProbeRows" -> SQLMetrics.createMetric(sparkContext, "number of probe rows"),
    "numBuiltLeft" -> SQLMetrics.createMetric(sparkContext, "tasks that built the left side"),
    "numBuiltRight" -> SQLMetrics.createMetric(sparkContext, "tasks that built the right side"),
    "numSorted" -> SQLMetrics.createMetric(sparkContext, "tasks that sorted both sides"),
    "numIndexed" -> SQLMetrics.createMetric(sparkContext, "number of keys searched by range"),
    "spillSize" -> SQLMetrics.createSizeMetric(sparkContext, "spill size"),
    "peakMemory" -> SQLMetrics.createSizeMetric(sparkContext, "peak memory"))

  /**
   * The range in the condition. It is computed here, because rules replace parts of the join, such as
   * its keys.
   */
  private[skewext] def range: Option[RangeMatch] =
    condition
      .filter(_ => conf.getConf(SkewConf.RANGE_JOIN_ENABLED))
      .flatMap(RangeMatch.besideKeys(_, sides.map(_.outputSet)))

  override protected def joined(makesRows: Boolean): RDD[InternalRow] = {
    val inputs = sides.map(_.execute())
    new MultiZipRDD[InternalRow](
      sparkContext,
      inputs,
      sides.map(MultiZipRDD.isRead),
      task(makesRows, inputs.head.getNumPartitions))
  }

  private def task(makesRows: Boolean, tasks: Int) = ProbeJoinTask(
    output = taskOutput(makesRows),
    keys = JoinKeys(
      Seq(leftKeys, rightKeys).zip(sides).map { case (keys, side) =>
        keys.map(k => BindReferences.bindReference(SqlInternals.normalizeFloats(k), side.output))
      },
      conf.getConf(SkewConf.MULTI_JOIN_HASH_BITS)),
    kind = kind,
    condition = boundCondition.map(PairCondition(_, range.map(_.map(overPairs)))),
    buildSides = BuildSides.of(left, right, tasks),
    opensEarly = sides.map(MultiZipRDD.isRead),
    areObserved = sides.map(BuildProbeJoinExec.isObserved),
    grouping = GroupingSettings.of(conf),
    metrics = ProbeJoinMetrics(
      outputRows = longMetric("numOutputRows"),
      build = BuildMetrics(
        rows = longMetric("numBuildRows"),
        size = longMetric("buildDataSize"),
        sides = Seq(longMetric("numBuiltLeft"), longMetric("numBuiltRight"))),
      probeRows = longMetric("numProbeRows"),
      sortedTasks = longMetric("numSorted"),
      indexedKeys = longMetric("numIndexed"),
      spillSize = longMetric("spillSize"),
      peakMemory = longMetric("peakMemory")))

  override protected def withNewChildrenInternal(
      newLeft: SparkPlan,
      newRight: SparkPlan): BuildProbeJoinExec = copy(left = newLeft, right = newRight)
}

object BuildProbeJoinExec {

  /** The name in plans. */
  val Name = "BuildProbeJoin"

  /** Whether the task that reads the side counts its rows, for `Dataset.observe`. */
  private def isObserved(side: SparkPlan): Boolean = side match {
    case _: CollectMetricsExec => true
    case _: Exchange => false
    case cached: InMemoryTableScanExec => isObserved(cached.relation.cachedPlan)
    case adaptive: AdaptiveSparkPlanExec => isObserved(adaptive.executedPlan)
    case other => other.children.exists(isObserved)
  }
}

/**
 * Joins one partition: the zip function of the operator's RDD. It contains no plan, so that a
 * serialized task is small.
 *
 * @param buildSides for each task, the side that is built: 0 or 1.
 * @param opensEarly whether each side only reads a shuffle, without memory of its own.
 * @param areObserved whether each side must be read to its end, even if no row of it has a match.
 */
private[skewext] case class ProbeJoinTask(
    output: TaskOutput,
    keys: JoinKeys,
    kind: PairKind,
    condition: Option[PairCondition],
    buildSides: Array[Byte],
    opensEarly: Seq[Boolean],
    areObserved: Seq[Boolean],
    grouping: GroupingSettings,
    metrics: ProbeJoinMetrics)
    extends ((Int, Array[() => Iterator[InternalRow]]) => Iterator[InternalRow]) {

  /** The condition as code; null if there is none. */
  def predicate: BasePredicate =
    condition.map(c => EvaluatedInTurn.predicate(c.expression, Nil)).orNull

  override def apply(
      partition: Int,
      inputs: Array[() => Iterator[InternalRow]]): Iterator[InternalRow] =
    new ProbeJoinIterator(this, inputs, buildSides(partition)).toScala
}

/**
 * A condition besides the equality of keys, over [[PairRows]].
 *
 * @param range the range in it, if it has one.
 */
private[skewext] case class PairCondition(expression: Expression, range: Option[RangeMatch])

/** The operator's SQL metrics. A task adds to them once, at its end. */
private[skewext] case class ProbeJoinMetrics(
    outputRows: SQLMetric,
    build: BuildMetrics,
    probeRows: SQLMetric,
    sortedTasks: SQLMetric,
    indexedKeys: SQLMetric,
    spillSize: SQLMetric,
    peakMemory: SQLMetric)

/** @param sides for each side, the number of tasks that build it. */
private[skewext] case class BuildMetrics(rows: SQLMetric, size: SQLMetric, sides: Seq[SQLMetric])

/**
 * Chooses the side of a join that each task builds: the one with fewer bytes. Adaptive execution
 * knows the bytes of shuffles for each task. If the size of a side is unknown, the estimate of the
 * optimizer counts for all tasks.
 */
private[probe] object BuildSides {

  def of(left: SparkPlan, right: SparkPlan, tasks: Int): Array[Byte] = {
    val sizes = Seq(left, right).map(sizesOf(_, tasks))
    if (sizes.forall(_.isDefined)) {
      val Seq(ofLeft, ofRight) = sizes.flatten
      val Seq(byLeft, byRight) = Seq(left, right).map(side => if (grows(side)) JoinGrowth else 1.0)
      Array.tabulate(tasks)(i => smaller(ofLeft(i) * byLeft, ofRight(i) * byRight))
    } else {
      def total(side: SparkPlan, known: Option[IndexedSeq[Long]]): BigInt =
        known.map(s => BigInt(s.sum)).orElse(estimate(side)).getOrElse(BigInt(Long.MaxValue))
      Array.fill(tasks)(smaller(total(left, sizes(0)), total(right, sizes(1))))
    }
  }

  /**
   * A join may have very many more rows than its inputs, and fills the memory if it is built. So it
   * is built only if the other side is larger than so many times its inputs.
   */
  private val JoinGrowth = 8.0

  /** Whether a join of the same stage may have more rows than each of its inputs. */
  private def grows(side: SparkPlan): Boolean = side match {
    case RowsOfFirst(child) => grows(child)
    case MadeOf(parts) => parts.size > 1 || parts.exists(part => grows(part.child))
    case MadeOf.Wrapped(child) => grows(child)
    case _ => false
  }

  /** A node with at most as many rows as its first child. */
  private object RowsOfFirst {
    def unapply(plan: SparkPlan): Option[SparkPlan] = plan match {
      case BuiltinShuffledJoin(join) if LeftExistence.unapply(join.joinType).isDefined =>
        Some(join.left)
      case asOf: SpineJoinExec => Some(asOf.children.head)
      case _ => None
    }
  }

  private def smaller[T](left: T, right: T)(implicit order: Ordering[T]): Byte =
    if (order.lt(left, right)) 0 else 1

  private def estimate(side: SparkPlan): Option[BigInt] =
    side.find(_.logicalLink.isDefined).flatMap(_.logicalLink).map(_.stats.sizeInBytes)

  /** The bytes of a side for each task, by those of the shuffles below; None if one is unknown. */
  private def sizesOf(side: SparkPlan, tasks: Int): Option[IndexedSeq[Long]] = (side match {
    case stage: ShuffleQueryStageExec => stage.mapStats.map(_.bytesByPartitionId.toIndexedSeq)
    case AQEShuffleReadExec(stage: ShuffleQueryStageExec, specs) =>
      stage.mapStats.map(s => specs.map(bytesOf(_, s.bytesByPartitionId)).toIndexedSeq)
    case MadeOf.Wrapped(child) => sizesOf(child, tasks)
    case RowsOfFirst(child) => sizesOf(child, tasks)
    case MadeOf(parts) =>
      val found = parts.map(part => sizesOf(part.child, tasks))
      found.reduceOption { (a, b) =>
        for (x <- a; y <- b if x.size == y.size) yield x.indices.map(i => x(i) + y(i))
      }.flatten
    case _ => None
  }).filter(_.size == tasks)

  private def bytesOf(spec: ShufflePartitionSpec, bytes: Array[Long]): Long = spec match {
    case CoalescedPartitionSpec(start, end, _) => bytes.slice(start, end).sum
    case PartialReducerPartitionSpec(_, _, _, size) => size
    case _ => 0L
  }
}
