package io.github.skewext.bucket

import io.github.skewext.platform.{NodeReasons, Reason}

/** Why Spark sorts the rows of a table with sorted buckets, instead of a merge of its files. */
final class SortedFileMergeReason private (text: String, advice: String)
    extends Reason(text, advice)

object SortedFileMergeReason extends NodeReasons[SortedFileMergeReason] {

  private def reason(text: String, advice: String) = listed(new SortedFileMergeReason(text, advice))

  val OtherOrder = reason(
    "the files are sorted by other columns than the query needs",
    "Write the table sorted by the columns of the join, in the same order: sort=True of " +
      "write_bucketed.")

  val ManyFiles = reason(
    "a bucket has more files than a task merges",
    "Rewrite the table: write_bucketed writes one file per bucket.")

  val ManyFilesOfMultiJoin = reason(
    "a bucket has more files than a task of a multi-way join merges",
    "Grouping by hash is faster if the rows fit in memory. Otherwise rewrite the table: " +
      "write_bucketed writes one file per bucket.")

  val LargeFiles = reason(
    "merging the files of a bucket could take more memory than spark.skewext.bucket.merge.maxBytes",
    "Raise the setting if executors have the memory, select fewer columns, or rewrite the " +
      "table with more buckets.")

  val OtherInputs = reason(
    "another input of the join is not sorted",
    "Rows are grouped by hash, which needs no order and no sort.")

  val NonDeterministic = reason(
    "an expression above the scan is not deterministic",
    "The merge reads several files at a time, so rand(), monotonically_increasing_id(), " +
      "input_file_name() and the like would give other values. Leave them out, or compute " +
      "rand() above the join.")

  val Format = reason(
    "only Parquet and ORC files preserve their sort order",
    "Write the table as Parquet or ORC.")

  val FileNames = reason(
    "a file name contains no bucket number",
    "The table has files that no bucketed write created. Spark refuses to read it by bucket.")

  val SwitchedOff =
    reason("spark.skewext.bucket.merge.enabled is false", "Set it to true for this query.")
}
