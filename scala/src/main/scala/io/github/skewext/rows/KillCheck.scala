package io.github.skewext.rows

import org.apache.spark.TaskContext
import org.apache.spark.sql.skewext.TaskInternals

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
