package io.github.skewext.explain.report

import scala.util.Try

import io.github.skewext.platform.{LoadedExtension, SkewConf}
import io.github.skewext.skew.plan.SkewSettings

import org.apache.spark.sql.execution.ui.SQLExecutionUIData
import org.apache.spark.sql.internal.{SQLConf, StaticSQLConf}
import org.apache.spark.sql.skewext.QueryStatus

/**
 * The settings of a query on which advice depends. Reports have them as JSON.
 *
 * @param switchedOff the settings that keep the extension from splitting joins.
 * @param skewedBytes the size from which adaptive execution splits a partition.
 * @param skewedFactor the multiple of the median from which it does.
 */
private[skewext] case class QuerySettings(
    skewextLoaded: Boolean,
    extensions: String,
    switchedOff: Seq[String],
    shufflePartitions: Int,
    skewedBytes: Long,
    skewedFactor: Double,
    advisoryBytes: Long) {

  /** Whether the extension splits skewed joins. */
  def splits: Boolean = skewextLoaded && switchedOff.isEmpty
}

private[skewext] object QuerySettings {

  def of(status: QueryStatus, query: SQLExecutionUIData): QuerySettings = {
    val conf = new SQLConf
    val given = status.properties ++ Option(query.modifiedConfigs).getOrElse(Map.empty)
    // A setting of another version may have a value that is invalid in this one.
    given.foreach { case (key, value) => Try(conf.setConfString(key, value)) }
    val skew = SkewSettings.of(conf)
    val extensions = given.getOrElse(StaticSQLConf.SPARK_SESSION_EXTENSIONS.key, "")
    QuerySettings(
      extensions.split(",").map(_.trim).contains(LoadedExtension.className),
      extensions,
      (SQLConf.ADAPTIVE_EXECUTION_ENABLED +: SkewConf.splitSwitches)
        .filterNot(conf.getConf(_))
        .map(_.key),
      conf.numShufflePartitions,
      skew.thresholdBytes,
      skew.factor,
      skew.advisoryBytes)
  }
}
