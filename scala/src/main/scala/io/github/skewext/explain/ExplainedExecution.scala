package io.github.skewext.explain

import io.github.skewext.execution.split.KeySketchExec
import io.github.skewext.execution.{MadeOf, MultiFullJoinExec, MultiJoinExec}
import io.github.skewext.internal.SkewConf
import io.github.skewext.planner.SpreadNullKeys

import org.apache.spark.sql.catalyst.plans.physical.SinglePartition
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.{BulkShuffleExchangeExec, ColumnShuffleExchangeExec}

/** How our operator works, read from its plan. */
private[skewext] object ExplainedExecution {

  def of(join: MultiJoinExec, adaptive: Boolean, conf: SQLConf): Execution = {
    val exchanges = join.children.flatMap(exchangeOf)
    Execution(
      rows = rows(join, conf),
      nullKeys = nullKeys(join, exchanges.size, adaptive, conf),
      exchanges = exchanges.size,
      bulk = exchanges.count(_.isInstanceOf[BulkShuffleExchangeExec]),
      columns = exchanges.count(_.isInstanceOf[ColumnShuffleExchangeExec]),
      byRow = exchanges.flatMap(_.getTagValue(BulkShuffleExchangeExec.WhyRows)).distinct,
      counted = exchanges.count(_.exists(_.isInstanceOf[KeySketchExec])))
  }

  private def rows(join: MultiJoinExec, conf: SQLConf): String =
    if (join.comesOrdered && join.order == MultiFullJoinExec.Natural) {
      "in the order of the keys, as spark.skewext.multiJoin.order asks for"
    } else if (join.comesOrdered) {
      "sorted inputs are merged as they come"
    } else if (conf.getConf(SkewConf.MULTI_JOIN_GROUPING) == "sort") {
      "brought together by sorting, as spark.skewext.multiJoin.grouping asks for"
    } else {
      "brought together by hash"
    }

  private def nullKeys(
      join: MultiJoinExec,
      exchanges: Int,
      adaptive: Boolean,
      conf: SQLConf): String =
    if (join.spreadNullKeys) {
      "rows with a null key are spread over all tasks"
    } else if (!SpreadNullKeys.canComeOut(join)) {
      "no row with a null key comes out"
    } else {
      val why =
        if (!adaptive) "the plan is not adaptive"
        else if (!conf.getConf(SkewConf.MULTI_JOIN_SPREAD_NULL_KEYS)) {
          s"${SkewConf.MULTI_JOIN_SPREAD_NULL_KEYS.key} is false"
        } else if (join.children.forall(_.outputPartitioning == SinglePartition)) {
          "there is only one"
        } else if (exchanges < join.children.size) {
          "an input has the partitions of the key already"
        } else {
          "something above or below relies on the partitions of the key"
        }
      s"rows with a null key all go to one task: $why"
    }

  private def exchangeOf(input: SparkPlan): Option[ShuffleExchangeLike] = input match {
    case exchange: ShuffleExchangeLike => Some(exchange)
    case MadeOf.Wrapped(plan) => exchangeOf(plan)
    case SortExec(_, false, child, _) => exchangeOf(child)
    case _ => None
  }
}
