package io.github.skewext.join.exec

import io.github.skewext.facts.PartitionwiseOperator

import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.metric.SQLMetric

/**
 * A join that matches each row of its first input, the spine, separately, with at
 * most one row of each other input. So tasks may share the rows of the spine, if each of them reads
 * all rows that the other inputs have in the partition.
 */
trait SpineJoinExec extends PartitionwiseOperator {

  /** The compared expressions of each input. */
  def keys: Seq[Seq[Expression]]

  /** How tasks share partitions, if some are split. */
  def split: Option[SplitInputs]

  /**
   * Of a part of an input's rows, those that may match a row of the spine, partition by partition.
   * If the join reads only the candidates of all parts, it returns the same rows.
   *
   * @param spine the rows of the spine with the keys of each partition.
   */
  def candidates(input: Int, spine: RDD[InternalRow], part: RDD[InternalRow]): RDD[InternalRow]

  /** The same join of inputs that are read in parts. */
  def splitBy(parts: Seq[SparkPlan], split: SplitInputs): SpineJoinExec
}

/** How the tasks of a join share partitions. The feature `skew` implements it. */
trait SplitInputs {

  /** The split for users, as a part of the operator's name. */
  def describe: String

  /** The end of the operator's text in plans. */
  def suffix: String

  def metrics(sc: SparkContext): Map[String, SQLMetric]

  /** The rows that each task of the join reads of each input. */
  def rows(join: SpineJoinExec): Seq[RDD[InternalRow]]
}
