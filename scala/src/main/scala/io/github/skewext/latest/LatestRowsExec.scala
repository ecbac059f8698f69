package io.github.skewext.latest

import io.github.skewext.facts.KeepsStableRows
import io.github.skewext.platform.SkewConf
import io.github.skewext.rows.{GroupingSettings, JoinKeys, KeyOrder}
import io.github.skewext.shuffle.ReadsColumns

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical.{ClusteredDistribution, Distribution, Partitioning}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.execution.window.{Partial, WindowGroupLimitExec}
import org.apache.spark.sql.execution.{SortExec, SparkPlan, UnaryExecNode}
import org.apache.spark.sql.skewext.{MultiZipRDD, SqlInternals}

/**
 * Executes [[io.github.skewext.latest.LatestRows]]. It groups rows by key in hash tables and keeps the
 * latest of each key. If the rows do not fit into memory, it sorts them by key.
 */
case class LatestRowsExec(keys: Seq[Expression], order: Seq[SortOrder], child: SparkPlan)
    extends UnaryExecNode
    with KeepsStableRows
    with ReadsColumns {

  override def output: Seq[Attribute] = child.output

  override def outputPartitioning: Partitioning = child.outputPartitioning

  /**
   * The rows of sorted inputs stay in their order. [[DropGroupLimits]] removes a limit with its sort
   * after Spark has removed the sorts above, so these must not rely on it.
   */
  override def outputOrdering: Seq[SortOrder] = {
    val order = DropGroupLimits.below(child).outputOrdering
    if (isByKey(order)) order else Nil
  }

  override def requiredChildDistribution: Seq[Distribution] = Seq(ClusteredDistribution(keys))

  /** Of rows that are first together, the bytes of all columns decide. */
  override def isSameIfPruned: Boolean = readAll(keys ++ order, child.outputSet)

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"),
    "spillSize" -> SQLMetrics.createSizeMetric(sparkContext, "spill size"))

  override protected def doExecute(): RDD[InternalRow] = {
    val types = child.output.map(_.dataType)
    val task = LatestTask(
      types,
      JoinKeys(
        Seq(bound(keys.map(SqlInternals.normalizeFloats))),
        conf.getConf(SkewConf.MULTI_JOIN_HASH_BITS),
        nullsEqual = true),
      if (isSorted) Some(KeyOrder(Seq(bound(keys)))) else None,
      order.map(BindReferences.bindReference(_, child.output)),
      GroupingSettings.of(conf),
      longMetric("numOutputRows"),
      longMetric("spillSize"))
    new MultiZipRDD(sparkContext, Seq(child.execute()), areReads = Seq(false), task)
  }

  /** Whether the input is sorted by key. Otherwise rows are grouped by hash. */
  def isSorted: Boolean = isByKey(child.outputOrdering)

  private def isByKey(order: Seq[SortOrder]): Boolean =
    SortOrder.orderingSatisfies(order, keys.map(SortOrder(_, Ascending)))

  private def bound(expressions: Seq[Expression]): Seq[Expression] =
    BindReferences.bindReferences(expressions, child.output)

  override protected def withNewChildInternal(newChild: SparkPlan): LatestRowsExec =
    copy(child = newChild)
}

/**
 * Removes Spark's limit for each map task, and its sort, where the rows of a key are in one partition
 * already, as above a join by the key. [[RewriteRowNumbers]] has left the limit.
 */
object DropGroupLimits extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan =
    if (!plan.exists(_.isInstanceOf[LatestRowsExec])) plan
    else {
      plan.transformUp { case latest: LatestRowsExec =>
        val kept = below(latest.child)
        if (kept eq latest.child) latest else latest.withNewChildren(Seq(kept))
      }
    }

  /** The child of latest rows that this rule leaves. */
  def below(child: SparkPlan): SparkPlan = child match {
    case limit: WindowGroupLimitExec if limit.mode == Partial =>
      limit.child match {
        case sort: SortExec if !sort.global => sort.child
        case sorted => sorted
      }
    case other => other
  }
}
