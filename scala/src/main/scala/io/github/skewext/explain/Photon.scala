package io.github.skewext.explain

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.internal.SQLConf

/** Databricks' engine of its own, whose operators have names like `PhotonShuffledHashJoin`. */
private[explain] object Photon {

  private val Note = "Photon executes queries here, or parts of them. Its joins are not split at " +
    "run time by skewext, and its shuffles are not replaced. Use compute without Photon for that."

  def note(plan: SparkPlan): Option[String] = if (isIn(plan)) Some(Note) else None

  def note(conf: SQLConf): Option[String] =
    if (conf.getConfString("spark.databricks.photon.enabled", "false").equalsIgnoreCase("true")) {
      Some(Note)
    } else {
      None
    }

  private def isIn(plan: SparkPlan): Boolean =
    plan.nodeName.startsWith("Photon") || PlannedJoin.below(plan).exists(isIn)
}
