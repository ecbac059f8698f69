package io.github.skewext.join.exec

import io.github.skewext.join.InputRole
import io.github.skewext.rows.{GroupingSettings, InputColumn, JoinKeys, KeyOrder, TaskOutput}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection}
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.test.SharedSparkSession
import org.apache.spark.sql.types.{DataType, LongType}

/** What a task of a join does, without a query around it. */
trait MultiJoinTaskTest extends SharedSparkSession {

  // It warns of the threads of Spark's own pools.
  override protected def doThreadPostAudit(): Unit = ()

  private val types: Seq[DataType] = Seq(LongType, LongType)

  protected def metric: SQLMetric = SQLMetrics.createMetric(spark.sparkContext, "rows")

  /** Of inputs with a key and a number; it shows the first one's number. */
  protected def join(roles: InputRole*): MultiJoinTask =
    MultiJoinTask(
      output = TaskOutput(
        roles.map(_ => types),
        Seq(InputColumn(0, 1, LongType, nullable = true)),
        makesRows = true),
      keys = JoinKeys(roles.map(_ => key), 64),
      roles = roles,
      withIndicator = false,
      ordered = None,
      grouping = GroupingSettings(sortAlways = false, Long.MaxValue, 4096),
      metrics = MultiJoinMetrics(metric, roles.map(_ => metric), metric, metric, metric, metric))

  /** The same where the inputs come sorted. */
  protected def sorted(task: MultiJoinTask): MultiJoinTask =
    task.copy(ordered = Some(KeyOrder(task.roles.map(_ => key))))

  protected def key: Seq[BoundReference] = Seq(BoundReference(0, LongType, nullable = true))

  protected def rows(n: Int, keys: Int): Iterator[InternalRow] =
    rows(Iterator.tabulate(n)(i => (i % keys).toLong))

  /** Rows with these keys, which are numbered. */
  protected def rows(keys: Iterator[Long]): Iterator[InternalRow] = {
    val projection = UnsafeProjection.create(types.toArray)
    keys.zipWithIndex.map { case (k, v) => projection(InternalRow(k, v.toLong)) }
  }
}
