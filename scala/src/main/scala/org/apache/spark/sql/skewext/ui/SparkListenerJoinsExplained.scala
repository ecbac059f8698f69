package org.apache.spark.sql.skewext.ui

import org.apache.spark.scheduler.SparkListenerEvent

/**
 * The explanation of the joins of a query that has run. In the event log it follows the end of the
 * query, under the name of this class. A history server without the jar skips it with a warning.
 *
 * @param explanation JSON, see [[io.github.skewext.explain.ExplanationJson]]
 */
case class SparkListenerJoinsExplained(executionId: Long, explanation: String)
    extends SparkListenerEvent
