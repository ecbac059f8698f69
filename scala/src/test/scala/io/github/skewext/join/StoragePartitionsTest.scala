package io.github.skewext.join

import io.github.skewext.MultiJoinTest
import io.github.skewext.join.exec.AlignPartitionsExec

import org.apache.spark.SparkConf
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.internal.SQLConf

/** Sessions in which tables that are partitioned by the key in their storage need no shuffle. */
trait StoragePartitionsTest extends MultiJoinTest {

  override protected def sparkConf: SparkConf = super.sparkConf
    .set("spark.sql.iceberg.planning.preserve-data-grouping", "true")
    .set(SQLConf.V2_BUCKETING_ENABLED.key, "true")
    .set(SQLConf.V2_BUCKETING_PUSH_PART_VALUES_ENABLED.key, "true")

  /** So that Spark prunes a table by the rows of another one while the query runs. */
  protected val PrunesAtRuntime: Seq[(String, String)] = Seq(
    SQLConf.DYNAMIC_PARTITION_PRUNING_REUSE_BROADCAST_ONLY.key -> "false",
    SQLConf.DYNAMIC_PARTITION_PRUNING_FALLBACK_FILTER_RATIO.key -> "100",
    SQLConf.DYNAMIC_PARTITION_PRUNING_USE_STATS.key -> "false")

  protected def aligned(df: DataFrame): Seq[AlignPartitionsExec] =
    collectWithSubqueries(df.queryExecution.executedPlan) { case a: AlignPartitionsExec => a }
}
