package io.github.skewext.skew.split

import io.github.skewext.skew.plan.TaskFiles

import org.apache.spark.sql.catalyst.plans.logical.{AppendData, LogicalPlan, MergeRows, OverwriteByExpression, V2WriteCommand}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.catalyst.trees.TreePattern.COMMAND
import org.apache.spark.sql.execution.SparkPlan
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

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (plan.containsPattern(COMMAND)) marked(plan) else plan

  private def marked(plan: LogicalPlan): LogicalPlan = {
    plan.foreach {
      case write: V1WriteCommand =>
        val isDivided =
          write.partitionColumns.size > write.staticPartitions.size || write.bucketSpec.isDefined
        mark(write.query, isDivided)
      case write: DataWritingCommand => mark(write.query, isDivided = false)
      // An append to a path names no partitioning unless partitionBy does. The table's own one is in its
      // files, and no rule should read these.
      case write: SaveIntoDataSourceCommand =>
        mark(write.query, write.options.contains(DataSourceUtils.PARTITIONING_COLUMNS_KEY))
      case write: V2WriteCommand if writesFiles(write) => mark(write.query, isDivided(write))
      case _ =>
    }
    plan match {
      // Delta plans the analyzed query, as a query of its own.
      case append: AppendData =>
        withAnalyzed(append, append.analyzedQuery)(q => append.copy(analyzedQuery = Some(q)))
      case overwrite: OverwriteByExpression =>
        withAnalyzed(overwrite, overwrite.analyzedQuery)(q =>
          overwrite.copy(analyzedQuery = Some(q)))
      case _ => plan
    }
  }

  /**
   * Marks the joins of the analyzed query in a copy, because its nodes are those of the DataFrame,
   * whose other queries write no files.
   */
  private def withAnalyzed(write: V2WriteCommand, analyzed: Option[LogicalPlan])(
      replaced: LogicalPlan => LogicalPlan): LogicalPlan = analyzed match {
    case Some(query) if writesFiles(write) && !WrittenJoin.isMarked(query) =>
      val copy = query.clone()
      mark(copy, isDivided(write))
      val plan = replaced(copy)
      plan.copyTagsFrom(write)
      plan
    case _ => write
  }

  private def mark(written: LogicalPlan, isDivided: Boolean): Unit =
    WrittenJoin.mark(written, if (isDivided) TaskFiles.OneForEachValue else TaskFiles.One)

  private def writesFiles(write: V2WriteCommand): Boolean = write.table.name != DropsRows

  private def isDivided(write: V2WriteCommand): Boolean = write.table match {
    case relation: DataSourceV2Relation => relation.table.partitioning.nonEmpty
    case _ => false
  }
}

/** A join whose tasks write files: no node between it and the write shuffles its rows. */
object WrittenJoin {

  /** On the nodes of a query that is written. On physical joins below an exchange: no files. */
  private val tag = TreeNodeTag[Option[TaskFiles]]("skewext.written")

  /** The files that each task of the join writes, if its tasks do. */
  def filesOf(join: SparkPlan): Option[TaskFiles] =
    join.getTagValue(tag).orElse(join.logicalLink.flatMap(_.getTagValue(tag))).flatten

  def isMarked(query: LogicalPlan): Boolean = query.getTagValue(tag).isDefined

  /**
   * Marks the joins of a query that is written. Only the physical plan shows whether their rows are
   * shuffled first. Below a MERGE no join is marked, because a straggler is worse there than another
   * file.
   */
  def mark(written: LogicalPlan, files: TaskFiles): Unit = written match {
    case _: MergeRows =>
    case node =>
      node.setTagValue(tag, Some(files))
      node.children.foreach(mark(_, files))
  }

  /** Whether a reader of the result gets other partitions than those of the join. */
  def isShuffled(join: SparkPlan): Boolean = join.getTagValue(tag).contains(None)

  def setShuffled(join: SparkPlan, isShuffled: Boolean): Unit =
    if (isShuffled) join.setTagValue(tag, None) else join.unsetTagValue(tag)
}
