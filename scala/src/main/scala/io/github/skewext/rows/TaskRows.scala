package io.github.skewext.rows

import org.apache.spark.memory.SparkOutOfMemoryError
import org.apache.spark.sql.execution.RowIterator
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.skewext.TaskInternals
import org.apache.spark.{SparkException, TaskContext}

/**
 * The output rows of a task that need memory. In the threads of Spark that write to Python, Spark's
 * own error would end the thread without a message, and the query would wait forever. A thread that
 * a user's function starts does not know its task, and joins below begin when they are first read.
 */
private[skewext] abstract class TaskRows(numOutputRows: SQLMetric) extends RowIterator {

  private[this] val taskThread = Thread.currentThread()
  protected[this] final val context: TaskContext = TaskContext.get()
  protected[this] final val killed = new KillCheck(context)
  protected[this] final var outputRows = 0L
  private[this] var end: TaskInternals.AtEnd = _

  /** Moves to the next row, and may run out of memory. Returns false after the last row. */
  protected def advance(): Boolean

  /** Frees memory after the last row. The task may go on with other partitions. */
  protected def close(): Unit

  /** Adds to the metrics, once: after the last row, or at the end of the task. */
  protected def report(): Unit

  final override def advanceNext(): Boolean = {
    if (end == null) end = TaskInternals.atEnd(context)(reportAll())
    val found =
      try {
        if (Thread.currentThread() eq taskThread) advance()
        else TaskInternals.within(context)(advance())
      } catch {
        case e: SparkOutOfMemoryError if Thread.currentThread() ne taskThread =>
          throw new SparkException("The task has no memory for the rows of a join.", e)
      }
    if (found) {
      outputRows += 1
    } else {
      close()
      end.run()
    }
    found
  }

  private def reportAll(): Unit = {
    numOutputRows.add(outputRows)
    report()
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
