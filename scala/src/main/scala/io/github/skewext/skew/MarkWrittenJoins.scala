package io.github.skewext.skew

import io.github.skewext.plan.{TaskFiles, WrittenJoin}

import org.apache.spark.sql.catalyst.plans.logical.{AppendData, LogicalPlan, OverwriteByExpression, V2WriteCommand}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.command.DataWritingCommand
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.datasources.{DataSourceUtils, SaveIntoDataSourceCommand, V1WriteCommand}

/**
 * Marks the joins of a query that is written, with the files that each of its tasks writes. Most writes
 * are not in the plan that is run: it is that of their query.
 */
object MarkWrittenJoins extends Rule[LogicalPlan] {

  // Spark's source `noop`, for benchmarks: it writes no files.
  private val DropsRows = "noop-table"

  override def apply(plan: LogicalPlan): LogicalPlan = {
    plan.foreach {
      case write: V1WriteCommand =>
        val isDivided =
          write.partitionColumns.size > write.staticPartitions.size || write.bucketSpec.isDefined
        mark(write.query, isDivided)
      case write: DataWritingCommand => mark(write.query, isDivided = false)
      case write: SaveIntoDataSourceCommand =>
        mark(write.query, write.options.contains(DataSourceUtils.PARTITIONING_COLUMNS_KEY))
      case write: V2WriteCommand if write.table.name != DropsRows =>
        val isDivided = write.table match {
          case relation: DataSourceV2Relation => relation.table.partitioning.nonEmpty
          case _ => false
        }
        // Delta plans the analyzed one, as a query of its own.
        (write.query +: analyzed(write).toSeq).foreach(mark(_, isDivided))
      case _ =>
    }
    plan
  }

  private def mark(written: LogicalPlan, isDivided: Boolean): Unit =
    WrittenJoin.mark(written, if (isDivided) TaskFiles.OneForEachValue else TaskFiles.One)

  private def analyzed(write: V2WriteCommand): Option[LogicalPlan] = write match {
    case append: AppendData => append.analyzedQuery
    case overwrite: OverwriteByExpression => overwrite.analyzedQuery
    case _ => None
  }
}
