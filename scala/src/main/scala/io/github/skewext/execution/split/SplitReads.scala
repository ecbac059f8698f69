package io.github.skewext.execution.split

import io.github.skewext.internal.SkewConf

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.BulkShuffledRowRDD

/** How the inputs of a split join are read, where that is not left to Spark. */
object SplitReads {

  /** The rows of an input: by the buffer if it is nothing but the read of a shuffle, else by Spark. */
  def execute(input: SparkPlan): RDD[InternalRow] = {
    val byBuffer =
      if (SQLConf.get.getConf(SkewConf.SHUFFLE_BULK_ROWS)) BulkShuffledRowRDD.of(input) else None
    byBuffer.getOrElse(input.execute())
  }
}
