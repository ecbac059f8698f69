package io.github.skewext.skew.plan

import io.github.skewext.join.WholeReason
import io.github.skewext.platform.{Reason, Reasons}

import org.apache.spark.sql.catalyst.trees.TreeNode

/** Why a join is not split. */
final class SkewReason private (text: String, advice: String, ofSkewedJoin: Boolean)
    extends WholeReason(text, advice, ofSkewedJoin)

object SkewReason extends Reasons[SkewReason] {

  /** A reason of a join that may have no skewed partition. */
  private def reason(text: String, advice: String) =
    listed(new SkewReason(text, advice, ofSkewedJoin = false))

  private def skewed(text: String, advice: String) =
    listed(new SkewReason(text, advice, ofSkewedJoin = true))

  val KeysTogether = skewed(
    "an operator above requires all rows of a key in one partition",
    "A group-by, window or join on the same key uses the partitions of this join. With a " +
      "repartition between them, the join can be split, at the cost of two shuffles.")

  val UserRepartition = skewed(
    "a repartition above the join requires its partitioning",
    "Remove the repartition if it is not needed.")

  val UserPartitions = skewed(
    "the result has the partitions of a repartition with a number below the join",
    "Omit the number in repartition(n, key), or the whole repartition. The technique adaptive of " +
      "skew_join splits all the same.")

  val BucketedWrite = skewed(
    "its rows are written to a bucketed table",
    "Write the rows to a table without buckets first.")

  val BarrierStage = skewed(
    "a barrier operator above (mapInPandas or mapInArrow with barrier=True) runs all tasks of " +
      "the stage at the same time, and more tasks may find no slots",
    "Repartition between the join and the barrier operator: then the join is split, and the " +
      "repartition decides how many tasks the barrier stage has.")

  val FewFiles = skewed(
    "its tasks write files, and a split would write files below " +
      "spark.sql.adaptive.advisoryPartitionSizeInBytes or, to a partitioned table, more files " +
      "than Spark's own split",
    "Lower that setting for this query, or repartition before the write: then the join writes " +
      "no files. io.github.skewext.skew.split.MarkWrittenJoins in spark.skewext.excludedRules removes " +
      "the limit.")

  val MergeTarget = skewed(
    "the cardinality check of a MERGE needs all matches of a target row in one task, so only " +
      "the target may be split",
    "Remove source rows that neither match nor are inserted, such as rows with a placeholder " +
      "for a missing key. A MERGE without WHEN MATCHED, or with WHEN MATCHED THEN DELETE alone, " +
      "is split on either side.")

  val NotStable = skewed(
    "the tasks that share a partition must read the same keys, and recomputing an input may " +
      "change its keys",
    "Below the shuffle of an input, its keys or the selection of its rows depend on rand(), " +
      "first, a sum of floating-point numbers, a limit or the like, or the input is an RDD, a " +
      "Python list or another system. Write it to a table first, or checkpoint it.")

  val OneBlock = skewed(
    "the skewed rows are in one row group of a file, or one map task wrote them and no column " +
      "divides them",
    "Besides the key, the rows have only columns that may change when they are recomputed " +
      "(floating-point numbers, arrays, maps, structs), or the rows come from first, " +
      "collect_list or the like, an RDD, a Python list or another system. Read the input with " +
      "more tasks, or write it to a table. Give a bucketed table smaller row groups " +
      "(parquet.block.size). Nothing divides a single large row, which skew_report with " +
      "sizes=True shows.")

  val InputNotSliceable = skewed(
    "an aggregate or join between the shuffle and this join cannot run on a part of the skewed " +
      "rows",
    "Aggregate or join after this join, or repartition the aggregated rows by the key.")

  val TooMuchReread = skewed(
    "its tasks would read more than spark.skewext.skew.maxRereadFactor allows",
    "The other inputs are large in that partition, too, or one map task wrote the skewed rows, " +
      "and each slice reads them all. Raise the factor to allow more reads, or the option " +
      "max_reread_factor of the technique adaptive.")

  val FewSlices = skewed(
    "it would have more slices than one partition may have",
    "Each slice is a task that reads the other inputs again. The option max_slices of the " +
      "technique adaptive of skew_join allows more.")

  val LargeSlices = skewed(
    "slices of spark.sql.adaptive.advisoryPartitionSizeInBytes are too large for it",
    "Lower that setting for this query, or the option slice_bytes of the technique adaptive.")

  val LittleGain = skewed(
    "a split would hardly shorten the longest task",
    "Nothing to do. For a join of two tables, skew_join with the technique adaptive and a " +
      "smaller min_gain splits for a smaller gain.")

  val NotSkewed = reason(
    "no partition is skewed",
    "If some tasks still take much longer, lower " +
      "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes.")

  val KeysNotCounted = reason(
    "no partition is skewed by its size, and keys were not sampled because there are too many " +
      "partitions or map tasks",
    "Use at most 8,192 partitions, and at most 16.8 million partitions times map tasks.")

  val SplitBySpark = reason("Spark has already split it", "Nothing to do.")

  val JoinType = reason(
    "joins of this type cannot be split",
    "Existence joins (EXISTS or IN below OR) and single joins of scalar subqueries are such. " +
      "Rewrite the query with a semi, anti or outer join.")

  val KeyType = reason(
    "the key has a collation, or a user-defined type, and equal keys may differ in their bytes",
    "Compare an expression without a collation, such as lower(k) COLLATE UTF8_BINARY.")

  val OuterCondition = reason(
    "an outer, semi or anti join has a condition on columns of both sides, besides the equal keys",
    "A row is unmatched only if no row of its key satisfies the condition, and a slice has " +
      "only some of these rows. A condition on columns of one side does not prevent a split.")

  val ConditionMayFail = reason(
    "an outer, semi or anti join has a condition on one side that may fail for rows without a " +
      "match",
    "Spark evaluates the condition only for rows with a match. In ANSI mode, use try_divide, " +
      "try_cast and the like, which cannot fail. The extension assumes that unknown functions " +
      "may fail.")

  val InputNotPartitioned = reason(
    "an input is neither a finished shuffle nor a bucketed table",
    "Rows that are cached, or computed in another way, have no partitions that can be read in " +
      "parts. Repartition the input by the key, which shuffles it.")

  val InputNotDeterministic = reason(
    "an input is not deterministic: recomputing it may return different rows",
    "Between its shuffle and the join the input has rand(), first, a sum of floating-point " +
      "numbers, row_number, a window of ROWS (rank and whole windows are fine), or the like. " +
      "Move this above the join, or write the input to a table first.")

  val InputsDiffer = reason(
    "the inputs have different partitions",
    "Adaptive execution coalesced the partitions of one input in another way than those of " +
      "another input. spark.sql.adaptive.coalescePartitions.enabled=false prevents this.")

  /** The reason that an executed plan has for a join that is not split. */
  def of(node: TreeNode[_]): Option[Detailed] = WholeReason.of(node).collect {
    case Reason.Detailed(reason: SkewReason, detail) => Reason.Detailed(reason, detail)
  }
}
