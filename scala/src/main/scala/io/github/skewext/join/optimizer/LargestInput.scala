package io.github.skewext.join.optimizer

import io.github.skewext.join.MultiFullJoin

import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

/**
 * The largest of some inputs of a join, in rules that run before Spark has made scans of tables of
 * DataSource V2. Such a table would plan a scan without filters to know its size, so the first input
 * is chosen if one of them reads one.
 */
private[optimizer] object LargestInput {

  def of(join: MultiFullJoin, inputs: Seq[Int]): Int =
    if (inputs.exists(join.children(_).exists(_.isInstanceOf[DataSourceV2Relation]))) inputs.head
    else inputs.maxBy(join.children(_).stats.sizeInBytes)
}
