package io.github.skewext

import java.util.{Arrays, Collections}

import scala.collection.JavaConverters._

import org.apache.spark.SparkFunSuite
import org.apache.spark.sql.skewext.ui.SkewextTab
import org.apache.spark.sql.{AnalysisException, DataFrame, SparkSession}

/** In a suite of its own: a JVM has one SparkContext at a time. */
class StoppedSessionSuite extends SparkFunSuite {

  private def session(): SparkSession = SparkSession
    .builder()
    .master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.extensions", classOf[SkewExtensions].getName)
    .getOrCreate()

  test("a builder that is used again attaches the tab to the second application") {
    val builder = SparkSession
      .builder()
      .master("local[1]")
      .config("spark.ui.enabled", "true")
      .config("spark.ui.port", "0")
      .config("spark.sql.extensions", classOf[SkewExtensions].getName)
    for (_ <- 1 to 2) {
      val session = builder.getOrCreate()
      try assert(SkewextTab.isAttachedTo(session.sparkContext))
      finally session.stop()
    }
  }

  test("an input of a stopped session is refused in a sentence") {
    val before = session()
    val gone = before.range(3).toDF("k")
    before.stop()
    val now = session()
    try {
      val here = now.range(3).toDF("k")
      def fails(i: Int)(join: => Any): Unit = {
        val message = intercept[AnalysisException](join).getMessage
        assert(
          message.contains(s"Input $i (counting from 0) belongs to a SparkSession that is stopped"),
          message)
      }
      def joined(inputs: DataFrame*) = PythonApi.multiJoin(
        inputs.asJava,
        inputs.map(_ => Arrays.asList("k")).asJava,
        Arrays.asList("k"),
        inputs.map(_ => "optional").asJava,
        null,
        null)
      fails(1)(joined(here, gone))
      fails(0)(joined(gone, here))
      fails(1)(
        PythonApi
          .skewJoin(here, gone, Arrays.asList("k"), "full", "auto", Collections.emptyMap(), null))
      fails(0)(
        PythonApi.skewReport(Arrays.asList(gone), Arrays.asList(Arrays.asList("k")), 3, 0.1, false))
      assert(joined(here, here).count() === 3)
    } finally now.stop()
  }
}
