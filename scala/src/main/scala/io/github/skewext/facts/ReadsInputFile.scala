package io.github.skewext.facts

import org.apache.spark.sql.catalyst.expressions.{InputFileBlockLength, InputFileBlockStart, InputFileName}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** Whether a query reads the name of the file that its task reads, which is empty above a shuffle. */
private[skewext] object ReadsInputFile {

  def apply(plan: LogicalPlan): Boolean = plan.exists(_.expressions.exists(_.exists {
    case _: InputFileName | _: InputFileBlockStart | _: InputFileBlockLength => true
    case _ => false
  }))
}
