package org.apache.spark.sql.skewext

import scala.concurrent.Future

import org.apache.spark.internal.config.PLUGINS
import org.apache.spark.rdd.RDD
import org.apache.spark.shuffle.sort.SortShuffleManager
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.plans.logical.Statistics
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.exchange.{ENSURE_REQUIREMENTS, ShuffleExchangeExec, ShuffleExchangeLike, ShuffleOrigin}
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics, SQLShuffleReadMetricsReporter, SQLShuffleWriteMetricsReporter}
import org.apache.spark.sql.execution.{SQLExecution, ShufflePartitionSpec, ShuffledRowRDD, SparkPlan}
import org.apache.spark.{MapOutputStatistics, ShuffleDependency, SparkEnv}

/**
 * Spark's exchange with another serializer, [[BulkRowSerializer]]: the same partitions, the same
 * bytes, less work for each row. Spark's own has no way to pass one in.
 */
case class BulkShuffleExchangeExec(
    override val outputPartitioning: Partitioning,
    child: SparkPlan,
    shuffleOrigin: ShuffleOrigin = ENSURE_REQUIREMENTS,
    advisoryPartitionSize: Option[Long] = None)
    extends ShuffleExchangeLike {

  override def nodeName: String = "Exchange"

  override def stringArgs: Iterator[Any] =
    Iterator(outputPartitioning, shuffleOrigin, BulkShuffleExchangeExec.Mark, s"[plan_id=$id]")

  /** As it gives the bytes that Spark's own gives, either is used again in place of the other. */
  override protected def doCanonicalize(): SparkPlan =
    ShuffleExchangeExec(
      outputPartitioning,
      child,
      shuffleOrigin,
      advisoryPartitionSize).canonicalized

  private lazy val writeMetrics =
    SQLShuffleWriteMetricsReporter.createShuffleWriteMetrics(sparkContext)
  private lazy val readMetrics =
    SQLShuffleReadMetricsReporter.createShuffleReadMetrics(sparkContext)

  override lazy val metrics: Map[String, SQLMetric] = Map(
    DataSize -> SQLMetrics.createSizeMetric(sparkContext, "data size"),
    NumPartitions -> SQLMetrics.createMetric(
      sparkContext,
      "number of partitions")) ++ readMetrics ++ writeMetrics

  private def DataSize = "dataSize"
  private def NumPartitions = "numPartitions"

  @transient private lazy val inputRDD: RDD[InternalRow] = child.execute()

  @transient lazy val shuffleDependency: ShuffleDependency[Int, InternalRow, InternalRow] = {
    val dependency = ShuffleExchangeExec.prepareShuffleDependency(
      inputRDD,
      child.output,
      outputPartitioning,
      new BulkRowSerializer(child.output.size, longMetric(DataSize)),
      writeMetrics)
    val partitions = longMetric(NumPartitions)
    partitions.set(dependency.partitioner.numPartitions)
    SQLMetrics.postDriverMetricUpdates(
      sparkContext,
      sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY),
      Seq(partitions))
    dependency
  }

  @transient override protected lazy val mapOutputStatisticsFuture: Future[MapOutputStatistics] =
    // There are no statistics of a stage without tasks, which adaptive execution knows as null.
    if (inputRDD.getNumPartitions == 0) Future.successful(null)
    else sparkContext.submitMapStage(shuffleDependency)

  // An override from Spark 4 on.
  def shuffleId: Int = shuffleDependency.shuffleId

  override def numMappers: Int = shuffleDependency.rdd.getNumPartitions

  override def numPartitions: Int = shuffleDependency.partitioner.numPartitions

  override def getShuffleRDD(partitionSpecs: Array[ShufflePartitionSpec]): RDD[InternalRow] =
    new ShuffledRowRDD(shuffleDependency, readMetrics, partitionSpecs)

  override def runtimeStatistics: Statistics = Statistics(
    sizeInBytes = longMetric(DataSize).value,
    rowCount = Some(longMetric(SQLShuffleWriteMetricsReporter.SHUFFLE_RECORDS_WRITTEN).value))

  /** One, for all plans that this exchange is used in. */
  @transient private lazy val shuffledRows =
    new ShuffledRowRDD(shuffleDependency, readMetrics)

  override protected def doExecute(): RDD[InternalRow] = shuffledRows

  override protected def withNewChildInternal(newChild: SparkPlan): BulkShuffleExchangeExec =
    copy(child = newChild)
}

object BulkShuffleExchangeExec {

  /** Why it does not write columns. */
  val WhyRows: TreeNodeTag[String] = TreeNodeTag("skewext.whyRows")

  /** What tells it from Spark's in a plan. */
  val Mark = "bulk rows"

  /**
   * Whether Spark itself runs shuffles here. With another shuffle manager, or a plugin that executes
   * plans in its own way, exchanges are theirs to replace, and they know Spark's own by its class.
   */
  def isPossible: Boolean = {
    val env = SparkEnv.get
    env != null && SparkShims.shuffleManager(env).getClass == classOf[SortShuffleManager] &&
    env.conf.get(PLUGINS).isEmpty
  }
}
