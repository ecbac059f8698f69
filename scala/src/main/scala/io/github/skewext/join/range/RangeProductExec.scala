package io.github.skewext.join.range

import io.github.skewext.facts.KeepsStableRows
import io.github.skewext.platform.SkewConf

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.{Inner, JoinType}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.metric.SQLMetric

/**
 * Spark's Cartesian product, except that each row of a partition of the left side is tested only with
 * the rows of a partition of the right side whose intervals touch its own ([[RangeMatch]]). Each task
 * makes an index of its partition of the right side, or of one part of it after the other.
 */
case class RangeProductExec(left: SparkPlan, right: SparkPlan, condition: Option[Expression])
    extends RangeJoinOperator
    with KeepsStableRows {

  override def nodeName: String = RangeProductExec.Name

  override def joinType: JoinType = Inner

  override def leftKeys: Seq[Expression] = Nil

  override def rightKeys: Seq[Expression] = Nil

  override def output: Seq[Attribute] = left.output ++ right.output

  override lazy val metrics: Map[String, SQLMetric] = pairMetrics

  override protected def joined(makesRows: Boolean): RDD[InternalRow] = {
    val work = task(build = 1, makesRows)
    val ofRight = boundEnds(1)
    val maxRows = conf.getConf(SkewConf.MULTI_JOIN_MAX_ROWS_IN_MEMORY)
    new PairedPartitions[InternalRow, InternalRow](
      sparkContext,
      left.execute(),
      right.execute(),
      (ofLeft, rows) => new RangeParts(work, ofRight, maxRows, ofLeft, rows))
  }

  override protected def withNewChildrenInternal(
      newLeft: SparkPlan,
      newRight: SparkPlan): RangeProductExec = copy(left = newLeft, right = newRight)
}

object RangeProductExec {

  /** The name in plans. */
  val Name = "RangeProduct"
}
