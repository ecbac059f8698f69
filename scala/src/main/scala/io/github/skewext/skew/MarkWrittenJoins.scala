package io.github.skewext.skew

import io.github.skewext.plan.WrittenJoin

import org.apache.spark.sql.catalyst.plans.logical.{AppendData, LogicalPlan, OverwriteByExpression, V2WriteCommand}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.command.DataWritingCommand
import org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand

/**
 * Tells joins right below a write that each of their tasks is going to write a file, or one for each
 * partition of the table. Most writes are not in the plan that is run: it is that of their query.
 */
object MarkWrittenJoins extends Rule[LogicalPlan] {

  // Spark's source `noop`, for benchmarks: it writes no files.
  private val DropsRows = "noop-table"

  override def apply(plan: LogicalPlan): LogicalPlan = {
    plan.foreach {
      case write: DataWritingCommand => WrittenJoin.mark(write.query)
      case write: SaveIntoDataSourceCommand => WrittenJoin.mark(write.query)
      case write: V2WriteCommand if write.table.name != DropsRows =>
        WrittenJoin.mark(write.query)
        // Delta plans this one, as a query of its own.
        analyzed(write).foreach(WrittenJoin.mark)
      case _ =>
    }
    plan
  }

  private def analyzed(write: V2WriteCommand): Option[LogicalPlan] = write match {
    case append: AppendData => append.analyzedQuery
    case overwrite: OverwriteByExpression => overwrite.analyzedQuery
    case _ => None
  }
}
