package io.github.skewext

import java.util.Arrays

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
      def joined(inputs: DataFrame*) =
        Joins.multiJoin(inputs.map(JoinInput.of(_)), Seq("k"), Seq("full"), None, None)
      fails(1)(joined(here, gone))
      fails(0)(joined(gone, here))
      fails(1)(Joins.skewJoin(here, gone, Left(Seq("k")), "full", Technique("auto")))
      val report = """{"function": "skew_report", "arguments": {"keys": "k"}, "columns": [0]}"""
      fails(0)(PythonApi.run(report, Arrays.asList(gone), Arrays.asList(gone)))
      assert(joined(here, here).count() === 3)
    } finally now.stop()
  }
}
