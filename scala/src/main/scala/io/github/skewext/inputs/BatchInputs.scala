package io.github.skewext.inputs

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.skewext.SqlInternals

private[skewext] object BatchInputs {

  /** Refuses streams. */
  def check(inputs: Seq[LogicalPlan], what: String): Unit =
    inputs.indices.find(inputs(_).isStreaming).foreach { i =>
      throw SqlInternals.analysisError(
        s"Input $i (counting from 0) is a streaming DataFrame; $what supports only batch inputs.")
    }
}
