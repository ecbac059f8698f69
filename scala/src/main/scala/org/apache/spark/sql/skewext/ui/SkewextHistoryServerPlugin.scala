package org.apache.spark.sql.skewext.ui

import org.apache.spark.SparkConf
import org.apache.spark.scheduler.SparkListener
import org.apache.spark.status.{AppHistoryServerPlugin, ElementTrackingStore}
import org.apache.spark.ui.SparkUI

/** Adds the tab to applications of a history server whose logs have data for it. */
private[spark] class SkewextHistoryServerPlugin extends AppHistoryServerPlugin {

  override def createListeners(conf: SparkConf, store: ElementTrackingStore): Seq[SparkListener] =
    Seq(new ExplainedQueries(conf, store))

  override def setupUI(ui: SparkUI): Unit =
    if (ui.store.store.count(classOf[ExplainedQuery]) > 0) new SkewextTab(ui)

  /** After the tab of queries. */
  override def displayOrder: Int = 1
}
