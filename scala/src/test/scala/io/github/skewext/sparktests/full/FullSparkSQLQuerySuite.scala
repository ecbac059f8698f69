package io.github.skewext.sparktests.full

import io.github.skewext.sparktests.{GoldenFileSuite, SparkTestFiles}

/** All of Spark's files of queries, under all settings that they name. */
class FullSparkSQLQuerySuite(homeBefore: Option[String]) extends GoldenFileSuite(homeBefore) {

  def this() = this(SparkTestFiles.setHome())

  override protected def leftOut: Map[String, String] = Map(
    "explain.sql" -> "shows plans",
    "explain-aqe.sql" -> "shows plans",
    "explain-cbo.sql" -> "shows plans")

  override protected def multiJoins: Long = 1000

  override protected def files: Seq[String] = SparkTestFiles.queryFiles
}
