package org.apache.spark.sql.skewext.ui

import org.apache.spark.scheduler.SparkListenerEvent

/**
 * What became of the joins of a query that has been run. It stands in the event log behind the end of the
 * query, under the name of this class: a history server without the jar skips it with a warning.
 *
 * @param explanation as JSON, see [[io.github.skewext.explain.ExplanationJson]]
 */
case class SparkListenerJoinsExplained(executionId: Long, explanation: String)
    extends SparkListenerEvent
