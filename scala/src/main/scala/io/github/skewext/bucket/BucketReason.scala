package io.github.skewext.bucket

import io.github.skewext.bucket.files.FileBuckets
import io.github.skewext.platform.{NodeReasons, Reason}

/** Why the filters of a query prune no bucket of a scan, with the affected columns as detail. */
final class BucketReason private[bucket] (text: String, advice: String) extends Reason(text, advice)

object BucketReason extends NodeReasons[BucketReason] {

  private def reason(text: String, advice: String) = listed(new BucketReason(text, advice))

  val NoCondition = reason(
    "no filter gives values for a bucket column",
    "Nothing to do if the query needs all rows.")

  val NotFixed = reason(
    "the filters do not bind every bucket column, so no bucket can be pruned",
    "Filter every bucket column with =, <=>, IN or IS NULL. A range, NOT or an expression over " +
      "a column gives no list of values.")

  val HashUnknown = reason(
    "equal values of a bucket column may be in several buckets, because of its type",
    "The column is a timestamp with time zone, a TIME, a struct, an array or a map. Filters on " +
      "columns of other types can prune buckets.")

  val Format = reason(
    "only Parquet and ORC files keep the values that determined their buckets",
    "Write the table as Parquet or ORC. Other formats change some values, such as the spaces " +
      "around a string in CSV.")

  val TooManyValues = reason(
    "the filters allow too many values of the bucket columns",
    "Nothing to do: so many values are in nearly all buckets.")

  val OtherBuckets = reason(
    "the table declares other buckets than those of a file",
    "The table was created over files that were written with another number of buckets, or by other " +
      "columns. Write the table again. Joins that Spark plans by its buckets return wrong rows.")

  val UnknownBuckets = reason(
    "it is not known whether the files have the buckets that the table declares",
    "Pruning is only safe if they do, so rows of a few files of each write are checked. Write the " +
      "table again if there are many writes: write_bucketed creates one file per bucket.")

  /** Why the definition of a table prunes nothing, if its files do not prove it. */
  def ofFiles(check: FileBuckets.Check): Option[Detailed] = check match {
    case FileBuckets.Proven => None
    case FileBuckets.Wrong(file) => Some(OtherBuckets(file))
    case FileBuckets.Unknown(why) => Some(UnknownBuckets(why))
  }
}

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
      "of the other side. Leave such expressions out. Select _metadata.file_name for the file of a row.")

  val Format = reason(
    "only Parquet and ORC files preserve their sort order",
    "Write the table as Parquet or ORC.")

  val FileNames = reason(
    "a file name contains no bucket number",
    "The table has files that no bucketed write created. Spark refuses to read it by bucket.")

  val SwitchedOff =
    reason("spark.skewext.bucket.order.enabled is false", "Set it to true for this query.")
}
