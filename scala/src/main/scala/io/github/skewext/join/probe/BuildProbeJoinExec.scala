package io.github.skewext.join.probe

import io.github.skewext.facts.{KeepsStableRows, OwnShuffledJoin}
import io.github.skewext.join.range.RangeMatch
import io.github.skewext.platform.SkewConf
import io.github.skewext.rows.{GroupingSettings, JoinKeys}
import io.github.skewext.shuffle.ReadsColumns

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.JoinType
import org.apache.spark.sql.execution.SparkPlan
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
}
