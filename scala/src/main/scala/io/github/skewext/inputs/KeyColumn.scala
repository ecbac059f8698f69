package io.github.skewext.inputs

import org.apache.spark.sql.catalyst.analysis.Resolver
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.skewext.SqlInternals

/** Finds a key column of an input by its name. The error for a missing column lists the columns. */
private[skewext] object KeyColumn {

  def of(input: LogicalPlan, position: Int, name: String, same: Resolver): Attribute = {
    input.output.filter(a => same(a.name, name)) match {
      case Seq(column) => column
      case Seq() =>
        val columns = input.output.map(_.name).mkString("[", ", ", "]")
        fail(position, s"no column '$name'; its columns are $columns.")
      case several =>
        fail(
          position,
          s"${several.size} columns named '$name', so the key is ambiguous; rename or drop all " +
            "but one.")
    }
  }

  private def fail(position: Int, has: String): Nothing =
    throw SqlInternals.analysisError(s"Input $position (counting from 0) has $has")
}

private[skewext] object BatchInputs {

  /** Refuses streams. */
  def check(inputs: Seq[LogicalPlan], what: String): Unit =
    inputs.indices.find(inputs(_).isStreaming).foreach { i =>
      throw SqlInternals.analysisError(
        s"Input $i (counting from 0) is a streaming DataFrame; $what supports only batch inputs.")
    }
}
