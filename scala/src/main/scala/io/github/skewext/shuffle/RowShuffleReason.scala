package io.github.skewext.shuffle

import io.github.skewext.platform.{NodeReasons, Reason}

/** Why an exchange below a join of skewext writes rows, instead of columns. */
final class RowShuffleReason private (text: String, advice: String) extends Reason(text, advice)

object RowShuffleReason extends NodeReasons[RowShuffleReason] {

  private def reason(text: String, advice: String) = listed(new RowShuffleReason(text, advice))

  val NotByHash = reason(
    "the rows are not partitioned by hash",
    "Nothing to do: blocks are written for joins, which partition rows by the hash of their keys.")

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
    "recomputing the input may return different rows, and Spark compares checksums of rows",
    "Spark has no checksums of the rows in blocks. Write the input to a table first, or set enabled " +
      "and enableFullRetryOnMismatch of spark.sql.shuffle.orderIndependentChecksum to false.")

  val Plugins = reason(
    "a plugin replaces Spark's exchanges",
    "Nothing to do: Spark's own exchanges run. Without the plugin, exchanges write columns.")
}
