package io.github.skewext.execution

import io.github.skewext.execution.grouping.{GroupingSettings, JoinKeys}
import io.github.skewext.plan.InputRole
import io.github.skewext.plan.InputRole.Required

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection}
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.test.SharedSparkSession
import org.apache.spark.sql.types.{DataType, LongType}

/** Tasks of a join of two inputs with a key and another number each, without a query around them. */
trait JoinTaskTest extends SharedSparkSession {

  // It warns of the threads of Spark's own pools.
  override protected def doThreadPostAudit(): Unit = ()

  private val types: Seq[DataType] = Seq(LongType, LongType)

  protected val keys: Seq[Seq[BoundReference]] =
    Seq.fill(2)(Seq(BoundReference(0, LongType, nullable = true)))

  protected def metric: SQLMetric = SQLMetrics.createMetric(spark.sparkContext, "rows")

  /** Shows the number of the first input, which is required; the other one has this role. */
  protected def joinTask(role: InputRole, rowsOfOther: SQLMetric = metric): MultiJoinTask =
    MultiJoinTask(
      inputTypes = Seq(types, types),
      keys = JoinKeys(keys, 64),
      roles = Seq(Required, role),
      output = Seq(InputColumn(0, 1, LongType, nullable = true)),
      makesRows = true,
      withIndicator = false,
      ordered = None,
      grouping = GroupingSettings(sortAlways = false, Long.MaxValue, 4096),
      metrics = MultiJoinMetrics(metric, Seq(metric, rowsOfOther), metric, metric, metric, metric))

  /** Rows with these keys, which are numbered. */
  protected def rows(keys: Iterator[Long]): Iterator[InternalRow] = {
    val projection = UnsafeProjection.create(types.toArray)
    keys.zipWithIndex.map { case (k, v) => projection(InternalRow(k, v.toLong)) }
  }
}
