package org.apache.spark.sql.skewext

import scala.concurrent.Future

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.plans.logical.Statistics
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics, SQLShuffleReadMetricsReporter, SQLShuffleWriteMetricsReporter}
import org.apache.spark.sql.execution.{SQLExecution, ShufflePartitionSpec, ShuffledRowRDD}
import org.apache.spark.{MapOutputStatistics, ShuffleDependency}

/**
 * The common part of skewext's exchanges, as in Spark's: their names in a plan, their metrics, and
 * the methods that adaptive execution calls. Lives here because running a map stage is
 * `private[spark]`.
 */
trait PlannedExchange extends ShuffleExchangeLike {

  /** Distinguishes it from Spark's exchange in a plan. */
  protected def mark: String

  def shuffleDependency: ShuffleDependency[Int, InternalRow, InternalRow]

  /** The rows of a shuffle that Spark reads. */
  protected def rowsOf(read: ShuffledRowRDD): RDD[InternalRow] = read

  override def nodeName: String = "Exchange"

  override def stringArgs: Iterator[Any] =
    Iterator(outputPartitioning, shuffleOrigin, mark, s"[plan_id=$id]")

  protected lazy val writeMetrics: Map[String, SQLMetric] =
    SQLShuffleWriteMetricsReporter.createShuffleWriteMetrics(sparkContext)
  protected lazy val readMetrics: Map[String, SQLMetric] =
    SQLShuffleReadMetricsReporter.createShuffleReadMetrics(sparkContext)

  override lazy val metrics: Map[String, SQLMetric] = Map(
    DataSize -> SQLMetrics.createSizeMetric(sparkContext, "data size"),
    NumPartitions -> SQLMetrics.createMetric(
      sparkContext,
      "number of partitions")) ++ readMetrics ++ writeMetrics

  private def DataSize = "dataSize"
  private def NumPartitions = "numPartitions"

  protected def dataSize: SQLMetric = longMetric(DataSize)

  /** Shows the number of partitions in the UI before the exchange has run. */
  protected def tellPartitions(number: Int): Unit = {
    val partitions = longMetric(NumPartitions)
    partitions.set(number)
    SQLMetrics.postDriverMetricUpdates(
      sparkContext,
      sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY),
      Seq(partitions))
  }

  @transient override protected lazy val mapOutputStatisticsFuture: Future[MapOutputStatistics] =
    // A stage without tasks has no statistics. For adaptive execution these are null.
    if (numMappers == 0) Future.successful(null)
    else sparkContext.submitMapStage(shuffleDependency)

  // Overrides a method from Spark 4 on.
  def shuffleId: Int = shuffleDependency.shuffleId

  override def numMappers: Int = shuffleDependency.rdd.getNumPartitions

  override def numPartitions: Int = outputPartitioning.numPartitions

  override def getShuffleRDD(specs: Array[ShufflePartitionSpec]): RDD[InternalRow] =
    rowsOf(new ShuffledRowRDD(shuffleDependency, readMetrics, specs))

  override def runtimeStatistics: Statistics = Statistics(
    sizeInBytes = dataSize.value,
    rowCount = Some(longMetric(SQLShuffleWriteMetricsReporter.SHUFFLE_RECORDS_WRITTEN).value))

  /** One RDD for all plans that use this exchange. */
  @transient private lazy val shuffledRows = rowsOf(
    new ShuffledRowRDD(shuffleDependency, readMetrics))

  override protected def doExecute(): RDD[InternalRow] = shuffledRows
}
