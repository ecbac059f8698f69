package io.github.skewext.technique

import io.github.skewext.explain.{ExplainedJoin, Explainer}

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.skewext.SqlInternals

/** Two tables to join by techniques, and what is said of how. */
trait SkewJoinTest extends TechniqueTest {

  protected val BroadcastBelow = "spark.sql.autoBroadcastJoinThreshold"

  protected def large = skewed(0, 800, hot = 2)
  protected def small = skewed(30, 40)

  protected def explained(df: DataFrame): Seq[ExplainedJoin] =
    SqlInternals.withActive(spark)(Explainer.explain(df.queryExecution)).joins
}
