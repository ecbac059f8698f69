package io.github.skewext.multijoin

import org.apache.spark.sql.catalyst.analysis.Resolver
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.skewext.SqlInternals

/** Finds a key column of an input by its name; says what the input has if there is no such column. */
private[skewext] object KeyColumn {

  def of(input: LogicalPlan, position: Int, name: String, same: Resolver): Attribute = {
    def columns = input.output.map(_.name).mkString("[", ", ", "]")
    input.output.filter(a => same(a.name, name)) match {
      case Seq(column) => column
      case Seq() =>
        throw SqlInternals.analysisError(
          s"Input $position has no column '$name'; its columns are $columns.")
      case several =>
        throw SqlInternals.analysisError(
          s"Input $position has ${several.size} columns named '$name' (its columns are $columns); " +
            "the key is ambiguous.")
    }
  }
}
