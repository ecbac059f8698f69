package io.github.skewext.explain

import io.github.skewext.join.exec.MultiJoinExec
import io.github.skewext.platform.SkewConf
import io.github.skewext.shuffle.{ColumnShuffleExchangeExec, RowShuffleReason}
import io.github.skewext.skew.run.KeySketchExec

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.Exchange
import org.apache.spark.sql.internal.SQLConf

/** The execution of our operator, read from its plan. */
private[skewext] object ExplainedExecution {

  def of(join: MultiJoinExec, adaptive: Boolean, conf: SQLConf): Execution =
    of(join, rows(join, conf), ExplainedNullKeys.of(join, adaptive, conf))

  def of(operator: SparkPlan, rows: String, nullKeys: String): Execution = {
    val exchanges = operator.children.flatMap(ExplainedNullKeys.exchangeOf)
    Execution(
      rows,
      nullKeys,
      exchanges = exchanges.size,
      columns = exchanges.count(_.isInstanceOf[ColumnShuffleExchangeExec]),
      byRow = exchanges.flatMap(RowShuffleReason.of(_)).map(_.text).distinct,
      counted = exchanges.count(_.children.exists(isSampled)))
  }

  /** The exchanges of a join below have samples of their own keys. */
  private def isSampled(plan: SparkPlan): Boolean = plan match {
    case _: KeySketchExec => true
    case _: Exchange => false
    case other => other.children.exists(isSampled)
  }

  private def rows(join: MultiJoinExec, conf: SQLConf): String =
    if (join.comesOrdered) {
      "merge of sorted inputs"
    } else if (conf.getConf(SkewConf.MULTI_JOIN_GROUPING) == "sort") {
      "sort (spark.skewext.multiJoin.grouping = sort)"
    } else {
      "hash"
    }
}
