package io.github.skewext.explain.report

import io.github.skewext.PythonApi
import io.github.skewext.skew.SkewTest

import java.nio.file.Files

import org.apache.commons.io.FileUtils
import org.json4s.jackson.JsonMethods

import org.apache.spark.SparkConf

/** Event logs as Spark 4 writes them by itself: folders of files that are compressed. */
class RolledLogSuite extends SkewTest {

  private lazy val folder = Files.createTempDirectory("events").toFile

  override protected def sparkConf: SparkConf = super.sparkConf
    .set("spark.eventLog.enabled", "true")
    .set("spark.eventLog.dir", folder.toURI.toString)

  override protected def afterAll(): Unit =
    try super.afterAll()
    finally FileUtils.deleteDirectory(folder)

  test("a report on a query of a log that is still written") {
    fullJoin("k")(skewed(0, 800, hot = 2), skewed(1, 60)).collect()
    val live = JsonMethods.parse(PythonApi.queryReport(spark, null))
    val Seq(log) = folder.listFiles().toSeq
    assert(log.list().exists(_.matches("events_1_.*\\.zstd")), log.list().mkString(" "))
    val events = PythonApi.eventLog(spark, log.getPath)
    val logged = JsonMethods.parse(PythonApi.queryReport(events, null))
    for (part <- Seq("stages", "joins")) assert(logged \ part === live \ part, part)
  }
}
