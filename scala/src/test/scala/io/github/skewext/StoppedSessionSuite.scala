package io.github.skewext

import java.util.{Arrays, Collections}

import scala.collection.JavaConverters._

import org.apache.spark.SparkFunSuite
import org.apache.spark.sql.{AnalysisException, DataFrame, SparkSession}

/** In a suite of its own: a JVM has one SparkContext at a time. */
class StoppedSessionSuite extends SparkFunSuite {

  private def session(): SparkSession = SparkSession
    .builder()
    .master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.extensions", classOf[SkewExtensions].getName)
    .getOrCreate()

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
