package io.github.skewext.platform

import org.apache.spark.SparkContext

/** Names the stages of skewext's own jobs, which distinguishes them from those of queries. */
private[skewext] object StageName {

  /** The property that `SparkContext.setCallSite` sets. */
  private val Property = "callSite.short"

  def named[T](context: SparkContext, name: String)(jobs: => T): T = {
    val before = context.getLocalProperty(Property)
    context.setLocalProperty(Property, name)
    try {
      jobs
    } finally {
      context.setLocalProperty(Property, before)
    }
  }
}
