package io.github.skewext

import io.github.skewext.explain.{ExplanationText, JoinOutlines}
import io.github.skewext.platform.{Guard, SparkLine}
import org.apache.spark.sql.skewext.SqlInternals

import org.apache.spark.sql.ExtendedExplainGenerator
import org.apache.spark.sql.execution.SparkPlan

/**
 * Adds the joins that skewext changed or left alone, with the reasons, to Spark's own EXPLAIN and
 * to the plans in its UI:
 * `spark.sql.extendedExplainProviders=io.github.skewext.JoinExplainProvider`.
 *
 * Spark calls it for each EXPLAIN, for each query that it starts, and for each change of an
 * adaptive plan. So it reads the reasons that rules left on the nodes of the plan. For joins that
 * lost theirs it repeats the rewrite, before a query runs. It starts no job.
 */
class JoinExplainProvider extends ExtendedExplainGenerator {

  override def title: String = "skewext"

  /** Empty if no join concerns skewext, and if skewext is not loaded or is switched off. */
  override def generateExtendedInfo(plan: SparkPlan): String =
    // Other classes may fail to load on another line of Spark.
    if (SparkLine.isOurs && plan.session != null) Guard.protect("the provider of EXPLAIN", "") {
      Guard.shallow("Spark's own EXPLAIN")(explained(plan)).getOrElse("")
    }
    else ""

  private def explained(plan: SparkPlan): String = SqlInternals.withActive(plan.session) {
    ExplanationText.of(JoinOutlines.of(plan, plan.session))
  }
}
