package io.github.skewext.shuffle

import io.github.skewext.rules.{LogicalLinks, SkewConf}
import io.github.skewext.stable.{KeepsStableRows, StableRows}

import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.skewext.ShuffleService

/**
 * Gives the exchanges below skewext's joins a serializer that does less work for each row, or
 * replaces them with columnar shuffles. It runs after the last rule that plans or removes
 * exchanges, because those rules match the class of Spark's exchange.
 */
object BulkExchanges extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan =
    if (conf.getConf(SkewConf.SHUFFLE_ENABLED)) {
      plan.transformUp { case reader: ReadsBulkRows => reader.mapChildren(bulk) }
    } else {
      plan
    }

  private def bulk(input: SparkPlan): SparkPlan = input match {
    case shuffle: ShuffleExchangeExec if !ShuffleService.hasSparksExchanges =>
      withReason(shuffle, ShuffleService.whyNoExchanges.map(RowShuffleReason.Plugins(_)))
    case shuffle: ShuffleExchangeExec if conf.getConf(SkewConf.SHUFFLE_COLUMNS) =>
      byColumnInstead(shuffle).fold(why => byRow(shuffle, Some(why)), identity)
    case shuffle: ShuffleExchangeExec => byRow(shuffle, None)
    case other => other
  }

  /**
   * Other shuffle managers know Spark's serializer of rows by its class, and write its rows in a
   * faster way of their own.
   *
   * @param why the reason why it does not write columns
   */
  private def byRow(
      shuffle: ShuffleExchangeExec,
      why: Option[RowShuffleReason.Detailed]): SparkPlan =
    if (ShuffleService.isBuiltin) {
      // The exchange of a user's repartition is linked to its logical node. Without the link,
      // adaptive execution would plan that node again.
      val rows = LogicalLinks.replacing(shuffle)(
        BulkShuffleExchangeExec(
          shuffle.outputPartitioning,
          shuffle.child,
          shuffle.shuffleOrigin,
          shuffle.advisoryPartitionSize))
      withReason(rows, why)
    } else {
      val other = why.filter(_.reason != RowShuffleReason.NoBatches)
      val ofManager = RowShuffleReason.OtherManager(ShuffleService.managerName)
      withReason(shuffle, other.orElse(Some(ofManager)))
    }

  private def withReason(exchange: SparkPlan, why: Option[RowShuffleReason.Detailed]): SparkPlan = {
    why.foreach(RowShuffleReason.set(exchange, _))
    exchange
  }

  /**
   * Spark 4 detects rows that differ when a task writes them again, but it does not detect this in
   * blocks. So a columnar shuffle requires stable rows.
   */
  private def byColumnInstead(
      shuffle: ShuffleExchangeExec): Either[RowShuffleReason.Detailed, SparkPlan] =
    for {
      columns <- ColumnShuffleExchangeExec.insteadOf(shuffle, byColumn(shuffle.child))
      _ <- Either.cond(StableRows.areIn(shuffle.child), (), RowShuffleReason.NotStable.given)
    } yield columns

  /** The same rows, with filters and projections that process columns. */
  private def byColumn(plan: SparkPlan): SparkPlan = plan match {
    case passing: KeepsStableRows if passing.passesColumns => passing.mapChildren(byColumn)
    case node => ColumnarFilterProjectExec.insteadOf(node).fold(node)(_.mapChildren(byColumn))
  }
}
