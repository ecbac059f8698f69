package io.github.skewext.internal

import org.apache.spark.SparkContext

/** Lets the stages of our own jobs have a name by which they are told from those of queries. */
private[skewext] object StageName {

  /** What `SparkContext.setCallSite` sets. */
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
