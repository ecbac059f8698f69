package io.github.skewext.shuffle

import io.github.skewext.rules.{Reason, TaggedReasons}

/** Why an exchange below a join of skewext writes rows, instead of columns. */
final class RowShuffleReason private (text: String, advice: String) extends Reason(text, advice)

object RowShuffleReason extends TaggedReasons[RowShuffleReason]("skewext.whyRows") {

  private def reason(text: String, advice: String) = listed(new RowShuffleReason(text, advice))

  val NoBatches = reason(
    "the input is neither a vectorized scan nor a cached table",
    "Nothing to do: most exchanges write rows, and explain does not show this reason in its text. " +
      "A table of Parquet or ORC files has a vectorized scan, unless the settings of Spark's " +
      "vectorized readers are off.")

  val RowOperator = reason(
    "an operator below returns rows",
    "Between the scan and the join, only filters and selections of columns keep batches. Compute " +
      "columns above the join, or store them in the table.")

  val ColumnType = reason(
    "blocks do not support the type of a column",
    "Such are arrays, maps, structs, variants, calendar intervals, TIME, user-defined types and " +
      "decimals with more than 18 digits. Select other columns only, or nothing to do.")

  val ManyRuns = reason(
    "columns times partitions exceed 16,384",
    "Each flush would have too few values for one partition. Lower spark.sql.shuffle.partitions, " +
      "or select fewer columns.")

  val BigEndian = reason(
    "the processor is big-endian",
    "Nothing to do: blocks need the byte order of little-endian processors.")

  val NotStable = reason(
    "the input is not deterministic: recomputing it may return different rows",
    "Spark detects rows that differ when a task writes them again, but not blocks. Write the input " +
      "to a table first.")

  val Plugins = reason(
    "plugins may replace Spark's exchanges",
    "Nothing to do: Spark's own exchanges run. Without spark.plugins, exchanges write columns.")

  val OtherManager = reason(
    "the shuffle manager is not Spark's own",
    "Nothing to do: other managers have a faster way for the rows of Spark's own exchange. They " +
      "carry columns, too, if the input has batches.")
}
