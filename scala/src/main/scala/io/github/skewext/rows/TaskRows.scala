package io.github.skewext.rows

import org.apache.spark.memory.SparkOutOfMemoryError
import org.apache.spark.sql.execution.RowIterator
import org.apache.spark.sql.skewext.TaskInternals
import org.apache.spark.{SparkException, TaskContext}

/**
 * Rows of a task that need memory. In the threads of Spark that write to Python, Spark's own error
 * would end the thread without a message, and the query would wait forever.
 */
private[skewext] abstract class TaskRows extends RowIterator {

  private[this] val taskThread = Thread.currentThread()

  /** `advanceNext`, which may run out of memory. */
  protected def advance(): Boolean

  final override def advanceNext(): Boolean =
    try {
      advance()
    } catch {
      case e: SparkOutOfMemoryError if Thread.currentThread() ne taskThread =>
        throw new SparkException("The task has no memory for the rows of a join.", e)
    }
}

/** Ends a killed task. Reads of a shuffle do so, too, but searching rows in memory may take long. */
private[skewext] final class KillCheck(context: TaskContext) {
  private[this] var steps = 0

  def check(): Unit = {
    if ((steps & KillCheck.StepsUnchecked - 1) == 0) checkNow()
    steps += 1
  }

  def checkNow(): Unit = TaskInternals.endIfKilled(context)
}

private[skewext] object KillCheck {
  final val StepsUnchecked = 4096
}
