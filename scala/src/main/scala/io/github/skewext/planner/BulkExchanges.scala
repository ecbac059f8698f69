package io.github.skewext.planner

import io.github.skewext.execution.MultiJoinExec
import io.github.skewext.execution.split.KeySketchExec
import io.github.skewext.internal.{LogicalLinks, SkewConf}
import io.github.skewext.plan.StableRows

import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.skewext.{BulkShuffleExchangeExec, ColumnShuffleExchangeExec, SelectColumnsExec}

/**
 * Gives the exchanges below our joins a serializer that does less for each row, or is for columns. After
 * the last rule that plans or removes exchanges, as those know Spark's own by its class.
 */
object BulkExchanges extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan =
    if (SkewConf.enabled(conf) && conf.getConf(SkewConf.SHUFFLE_BULK_ROWS) &&
      BulkShuffleExchangeExec.isPossible) {
      plan.transformUp { case join: MultiJoinExec => join.mapChildren(bulk) }
    } else {
      plan
    }

  private def bulk(input: SparkPlan): SparkPlan = input match {
    case shuffle: ShuffleExchangeExec =>
      // A repartition of the user's is linked to its logical node, which is planned once more without it.
      val rows = LogicalLinks.replacing(shuffle)(
        BulkShuffleExchangeExec(
          shuffle.outputPartitioning,
          shuffle.child,
          shuffle.shuffleOrigin,
          shuffle.advisoryPartitionSize))
      if (conf.getConf(SkewConf.SHUFFLE_COLUMNS)) {
        byColumnInstead(shuffle) match {
          case Right(columns) => columns
          case Left(why) =>
            rows.setTagValue(BulkShuffleExchangeExec.WhyRows, why)
            rows
        }
      } else {
        rows
      }
    case other => other
  }

  /** Of rows Spark 4 sees whether they are others when they are written again; of blocks it does not. */
  private def byColumnInstead(shuffle: ShuffleExchangeExec) =
    for {
      columns <- ColumnShuffleExchangeExec.insteadOf(shuffle, byColumn(shuffle.child))
      _ <- Either.cond(
        StableRows.areIn(shuffle.child),
        (),
        "rows that may be others when read again")
    } yield columns

  /** The same rows, of which filters and projections are made by column. */
  private def byColumn(plan: SparkPlan): SparkPlan = plan match {
    case counting: KeySketchExec => counting.mapChildren(byColumn)
    case node => SelectColumnsExec.insteadOf(node).fold(node)(_.mapChildren(byColumn))
  }
}
