package io.github.skewext.shuffle

import scala.util.Try

import io.github.skewext.facts.{KeepsStableRows, StableRows}
import io.github.skewext.platform.{NodeReasons, Reason, SkewConf}

import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.ShuffleService

/**
 * Replaces the exchanges below skewext's joins with columnar shuffles. It runs after the last rule
 * that plans or removes exchanges, because those rules match the class of Spark's exchange.
 */
object PlanColumnExchanges extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan =
    if (conf.getConf(SkewConf.SHUFFLE_ENABLED)) changed(plan) else plan

  private def changed(plan: SparkPlan): SparkPlan = plan match {
    case reader: ReadsColumns => reader.mapChildren(input => columnExchange(changed(input)))
    case other => other.mapChildren(changed)
  }

  private def columnExchange(input: SparkPlan): SparkPlan = input match {
    case shuffle: ShuffleExchangeExec =>
      val columns = ShuffleService.whyNoExchanges
        .map(RowShuffleReason.Plugins(_))
        .toLeft(())
        .flatMap(_ => byColumnInstead(shuffle))
      columns.left.foreach(RowShuffleReason.set(shuffle, _))
      columns.getOrElse(shuffle)
    case other => other
  }

  /**
   * Spark 4 can compare checksums of the rows that a task writes again, and has none for blocks. If
   * it does, a columnar shuffle requires stable rows.
   */
  private def byColumnInstead(
      shuffle: ShuffleExchangeExec): Either[RowShuffleReason.Detailed, SparkPlan] =
    for {
      columns <- ColumnShuffleExchangeExec.insteadOf(shuffle, byColumn(shuffle.child))
      _ <- Either.cond(
        !comparesRows || StableRows.areIn(shuffle.child),
        (),
        RowShuffleReason.NotStable.given)
    } yield columns

  private def comparesRows: Boolean =
    Checksums.exists(key =>
      (knownChecksums.contains(key) || conf.contains(key)) && conf.getConfString(key).toBoolean)

  /** Each query asks for them, and an unknown setting is an exception. */
  private lazy val knownChecksums: Seq[String] =
    Checksums.filter(key => Try(new SQLConf().getConfString(key)).isSuccess)

  // Settings of Spark 4.1 and later.
  private[shuffle] val Checksums: Seq[String] = Seq("enabled", "enableFullRetryOnMismatch").map(
    "spark.sql.shuffle.orderIndependentChecksum." + _)

  /** The same rows, with filters and projections that process columns. */
  private def byColumn(plan: SparkPlan): SparkPlan = plan match {
    case passing: KeepsStableRows if passing.passesColumns => passing.mapChildren(byColumn)
    case node => ColumnarFilterProjectExec.insteadOf(node)(byColumn).getOrElse(node)
  }
}

/** An operator whose exchanges write blocks of columns, see [[PlanColumnExchanges]]. */
trait ReadsColumns extends SparkPlan

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
