package io.github.skewext.nullkeys

import io.github.skewext.join.exec.MultiFullJoinExec
import io.github.skewext.platform.LogicalLinks

import org.apache.spark.sql.execution.SparkPlan

/** Spreads the rows with a null key over all tasks of a multi-way join ([[NullKeySpreading]]). */
object SpreadNullKeys extends NullKeySpreading {

  override protected def spread(join: SparkPlan, query: Query): Option[SparkPlan] = join match {
    case multi: MultiFullJoinExec if query.canSpread(multi) && !query.sharesShuffle(multi) =>
      Some(
        LogicalLinks.replacing(multi)(
          multi.copy(spreadBy = multi.children.zip(multi.keys).map((query.spreadBy _).tupled))))
    case _ => None
  }
}
