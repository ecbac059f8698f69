package org.apache.spark.sql.skewext

import java.io.OutputStream

import org.apache.spark.internal.config.SHUFFLE_COMPRESS
import org.apache.spark.io.CompressionCodec
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLShuffleReadMetricsReporter, SQLShuffleWriteMetricsReporter}
import org.apache.spark.{MapOutputTrackerMaster, SparkEnv, TaskContext}

/** Sizes and metrics of Spark's shuffles. Lives here because they are `private[spark]`. */
object ShuffleInternals {

  /** The bytes that each map task wrote for a partition; -1 if its output is lost. */
  def blockSizes(shuffleId: Int, partition: Int): Seq[Long] =
    SparkEnv.get.mapOutputTracker match {
      case tracker: MapOutputTrackerMaster =>
        tracker.shuffleStatuses
          .get(shuffleId)
          .map(_.withMapStatuses { statuses =>
            statuses.map(s => if (s == null) -1L else s.getSizeForBlock(partition)).toSeq
          })
          .getOrElse(Nil)
      case _ => Nil
    }

  /**
   * Counts rows that a task has read, beside those that Spark counts.
   *
   * @param metrics the metrics of the exchange
   */
  def countRead(context: TaskContext, metrics: Map[String, SQLMetric]): Long => Unit = {
    val reporter = new SQLShuffleReadMetricsReporter(
      context.taskMetrics().createTempShuffleReadMetrics(),
      metrics)
    reporter.incRecordsRead(_)
  }

  /** The same for rows that it has written. */
  def countWritten(context: TaskContext, metrics: Map[String, SQLMetric]): Long => Unit = {
    val reporter =
      new SQLShuffleWriteMetricsReporter(context.taskMetrics().shuffleWriteMetrics, metrics)
    reporter.incRecordsWritten(_)
  }

  /** The compressed size of the first `length` bytes of an array, by the codec of shuffle files. */
  def compressedSize(bytes: Array[Byte], length: Int): Int = {
    val conf = SparkEnv.get.conf
    if (!conf.get(SHUFFLE_COMPRESS)) {
      length
    } else {
      val counted = new CountedBytes
      val out = CompressionCodec.createCodec(conf).compressedOutputStream(counted)
      out.write(bytes, 0, length)
      out.close()
      counted.count
    }
  }

  private final class CountedBytes extends OutputStream {
    var count = 0
    override def write(byte: Int): Unit = count += 1
    override def write(bytes: Array[Byte], from: Int, length: Int): Unit = count += length
  }
}
