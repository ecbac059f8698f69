package io.github.skewext.skew

import io.github.skewext.SkewConf

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.BulkShuffledRowRDD

/** How the inputs of a split join are read, where that is not left to Spark. */
object SplitReads {

  /**
   * The rows of an input: by the buffer if it is nothing but the read of a shuffle, else by Spark.
   *
   * @param ranges of blocks that tasks share, by task; they do not look for their rows themselves
   */
  def execute(input: SparkPlan, ranges: Map[Int, RowRange]): RDD[InternalRow] =
    read(input, ranges).getOrElse {
      require(ranges.isEmpty, "Tasks that share a block were to read ranges of it, and cannot.")
      input.execute()
    }

  /** Whether tasks can be given ranges to read. */
  def canRead(input: SparkPlan): Boolean = read(input, Map.empty).isDefined

  private def read(input: SparkPlan, ranges: Map[Int, RowRange]): Option[RDD[InternalRow]] =
    if (isEnabled) BulkShuffledRowRDD.of(input, ranges) else None

  /**
   * Whether tasks can read ranges of a shuffle's blocks: where these begin must be true also of a block
   * that is written again after a failure.
   */
  def canBeInRanges(input: SparkPlan, stage: ShuffleQueryStageExec): Boolean = {
    val isRead = input match {
      case AQEShuffleReadExec(`stage`, _) | `stage` => true
      case _ => false
    }
    isRead && isEnabled && BulkShuffledRowRDD.canRead(stage.shuffle) &&
    StableRows.areInOrder(stage.shuffle.child)
  }

  private def isEnabled: Boolean = SQLConf.get.getConf(SkewConf.SHUFFLE_BULK_ROWS)
}
