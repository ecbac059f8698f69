package io.github.skewext.skew.run

import io.github.skewext.platform.SkewConf
import io.github.skewext.shuffle.BulkShuffledRowRDD

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.{ShufflePartitionSpec, SparkPlan}
import org.apache.spark.sql.skewext.SqlInternals

/** Reads the inputs of a split join. */
object SplitReads {

  /**
   * Returns the rows of an input: by the buffer if it only reads Spark's own exchange, else by
   * Spark.
   */
  def execute(input: SparkPlan): RDD[InternalRow] = {
    val byBuffer =
      if (input.conf.getConf(SkewConf.SHUFFLE_ENABLED)) BulkShuffledRowRDD.of(input) else None
    byBuffer.getOrElse(input.execute())
  }

  /**
   * The rows of an input with other reads. In Spark 3.5, new nodes have the session of the thread,
   * which has none where an RDD of the query is used.
   */
  def execute(input: SparkPlan, specs: Seq[ShufflePartitionSpec]): RDD[InternalRow] =
    SqlInternals.withActive(input.session)(execute(SplitReadSpecs.replacedIn(input, specs)))
}
