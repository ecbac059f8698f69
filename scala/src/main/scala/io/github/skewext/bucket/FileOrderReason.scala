package io.github.skewext.bucket

import io.github.skewext.platform.{NodeReasons, Reason}

/** Why Spark sorts the rows of a table with sorted buckets again. */
final class FileOrderReason private (text: String, advice: String) extends Reason(text, advice)

object FileOrderReason extends NodeReasons[FileOrderReason] {

  private def reason(text: String, advice: String) = listed(new FileOrderReason(text, advice))

  val OtherOrder = reason(
    "the files are sorted by other columns than the query needs",
    "Write the table sorted by the columns of the join, in the same order: sort=True of " +
      "write_bucketed.")

  val SeveralFiles = reason(
    "a bucket has several files",
    "Rewrite the table if the sort takes long: write_bucketed writes one file per bucket.")

  val OtherInputs = reason(
    "another input of the join is not sorted",
    "Rows are grouped by hash, which needs no order and no sort.")

  val NonDeterministic = reason(
    "an expression above the scan is not deterministic",
    "Without a sort, both sides of a join are read in turns, so input_file_name() would return files " +
      "of the other side. Leave such expressions out, or compute them above the join. Select " +
      "_metadata.file_name for the file of a row.")

  val Format = reason(
    "only Parquet and ORC files preserve their sort order",
    "Write the table as Parquet or ORC.")

  val FileNames = reason(
    "a file name contains no bucket number",
    "The table has files that no bucketed write created. Spark refuses to read it by bucket.")

  val SwitchedOff =
    reason("spark.skewext.bucket.order.enabled is false", "Set it to true for this query.")
}
