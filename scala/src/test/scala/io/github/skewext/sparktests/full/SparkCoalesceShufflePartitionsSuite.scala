package io.github.skewext.sparktests.full

import io.github.skewext.SkewExtensions
import org.scalactic.source.Position
import org.scalatest.Tag

import org.apache.spark.SparkConf
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.CoalesceShufflePartitionsSuite
import org.apache.spark.sql.internal.SQLConf

/**
 * Spark's own tests of how small partitions are put together, with the extension loaded: those that
 * have a join, or an exchange that is used twice.
 */
class SparkCoalesceShufflePartitionsSuite extends CoalesceShufflePartitionsSuite {

  private lazy val chosen =
    Seq("join", "complex query", "plan already partitioned", "exchange reuse", "Union two")

  // They want the number of partitions that fits the bytes of Spark's rows. Columns have fewer bytes.
  private lazy val leftOut =
    Seq("join operator", "complex query 2").map("determining the number of reducers: " + _)

  override protected def test(name: String, tags: Tag*)(body: => Any)(implicit
      position: Position): Unit =
    if (chosen.exists(name.contains) && !name.contains("minNumPostShufflePartitions") &&
      !leftOut.contains(name)) {
      super.test(name, tags: _*)(body)
    }

  // Spark's makes the session of a SparkConf of its own, into which no extension gets.
  override def withSparkSession(
      f: SparkSession => Unit,
      targetPostShuffleInputSize: Int,
      minNumPostShufflePartitions: Option[Int],
      enableIOEncryption: Boolean = false): Unit = {
    val conf = new SparkConf(false)
      .setMaster("local[*]")
      .setAppName("coalescing")
      .set("spark.sql.extensions", classOf[SkewExtensions].getName)
      .set("spark.ui.enabled", "false")
      .set("spark.io.encryption.enabled", enableIOEncryption.toString)
      .set(SQLConf.SHUFFLE_PARTITIONS.key, "5")
      .set(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key, "true")
      .set(SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key, "-1")
      .set(SQLConf.FETCH_SHUFFLE_BLOCKS_IN_BATCH.key, "true")
      .set("spark.unsafe.exceptionOnMemoryLeak", "true")
      .set(SQLConf.COALESCE_PARTITIONS_PARALLELISM_FIRST.key, "false")
      .set(SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES.key, targetPostShuffleInputSize.toString)
      .set(
        SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_NUM.key,
        minNumPostShufflePartitions.getOrElse(1).toString)
    val spark = SparkSession.builder().config(conf).getOrCreate()
    try f(spark)
    finally spark.stop()
  }
}
