package io.github.skewext.skew.exec

import io.github.skewext.rules.SkewConf
import io.github.skewext.shuffle.BulkShuffledRowRDD

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.internal.SQLConf

/** Reads the inputs of a split join. */
object SplitReads {

  /**
   * Returns the rows of an input: as bulk rows if it is only the read of a shuffle, else by Spark.
   */
  def execute(input: SparkPlan): RDD[InternalRow] = {
    val byBuffer =
      if (SQLConf.get.getConf(SkewConf.SHUFFLE_ENABLED)) BulkShuffledRowRDD.of(input) else None
    byBuffer.getOrElse(input.execute())
  }
}
