package io.github.skewext.explain

import io.github.skewext.execution.split.KeySketchExec
import io.github.skewext.execution.{MultiFullJoinExec, MultiJoinExec}
import io.github.skewext.internal.SkewConf

import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.{BulkShuffleExchangeExec, ColumnShuffleExchangeExec}

/** The execution of our operator, read from its plan. */
private[skewext] object ExplainedExecution {

  def of(join: MultiJoinExec, adaptive: Boolean, conf: SQLConf): Execution = {
    val exchanges = join.children.flatMap(ExplainedNullKeys.exchangeOf)
    Execution(
      rows = rows(join, conf),
      nullKeys = ExplainedNullKeys.of(join, adaptive, conf),
      exchanges = exchanges.size,
      bulk = exchanges.count(_.isInstanceOf[BulkShuffleExchangeExec]),
      columns = exchanges.count(_.isInstanceOf[ColumnShuffleExchangeExec]),
      byRow = exchanges.flatMap(_.getTagValue(BulkShuffleExchangeExec.WhyRows)).distinct,
      counted = exchanges.count(_.exists(_.isInstanceOf[KeySketchExec])))
  }

  private def rows(join: MultiJoinExec, conf: SQLConf): String =
    if (join.comesOrdered && join.order == MultiFullJoinExec.Natural) {
      "sort (spark.skewext.multiJoin.order = natural)"
    } else if (join.comesOrdered) {
      "merge of sorted inputs"
    } else if (conf.getConf(SkewConf.MULTI_JOIN_GROUPING) == "sort") {
      "sort (spark.skewext.multiJoin.grouping = sort)"
    } else {
      "hash"
    }
}
