package io.github.skewext.asof

import io.github.skewext.asof.exec.AsOfJoinExec

import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{CodegenSupport, ProjectExec, SparkPlan}

/**
 * Lets an as-of join select the columns of the projection above it, which drops the keys of the
 * versions. The join copies adjacent columns at once. Not below generated code, which reads the
 * columns that it needs without a row.
 */
object SelectAsOfColumns extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan = plan match {
    case project @ ProjectExec(list, join: AsOfJoinExec) => join.showing(list).getOrElse(project)
    case generated: CodegenSupport if generated.supportCodegen => plan
    case _ => plan.mapChildren(apply)
  }
}
