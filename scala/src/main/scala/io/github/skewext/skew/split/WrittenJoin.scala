package io.github.skewext.skew.split

import io.github.skewext.skew.plan.TaskFiles

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, MergeRows}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan

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

  def setShuffled(join: SparkPlan, isShuffled: Boolean): Unit =
    if (isShuffled) join.setTagValue(tag, None) else join.unsetTagValue(tag)
}
