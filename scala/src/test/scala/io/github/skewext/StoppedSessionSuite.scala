package io.github.skewext

import java.util.Arrays

import io.github.skewext.internal.BuildInfo
import io.github.skewext.platform.{Guard, LoadedExtension}
import org.apache.logging.log4j.Level

import org.apache.spark.SparkFunSuite
import org.apache.spark.sql.skewext.TestSessions
import org.apache.spark.sql.skewext.ui.SkewextTab
import org.apache.spark.sql.{AnalysisException, DataFrame, SparkSession, SparkSessionExtensions}

/** Sessions that start and stop, in a suite of their own: a JVM has one SparkContext at a time. */
class StoppedSessionSuite extends SparkFunSuite {

  /** The messages of the extension's own log while `body` runs. */
  private def logged(body: => Unit): Seq[String] = {
    val log = new LogAppender("the start of a session")
    withLogAppender(log, Seq(classOf[SkewExtensions].getName), Some(Level.INFO))(body)
    log.loggingEvents.map(_.getMessage.getFormattedMessage).toSeq
  }

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

  test("the log has one line for a session, with the active parts") {
    val lines = logged {
      val started = session()
      try {
        for (each <- Seq(started, started, started.newSession())) each.range(1).collect()
      } finally started.stop()
    }
    assert(lines.size === 1, lines)
    assert(lines.head.contains(s"skewext ${BuildInfo.version} for Spark ${BuildInfo.sparkLine} on"))
    assert(lines.head.contains(" parts are active"))
  }

  test("the log has one line for a session that registers late") {
    val late = SparkSession.builder().master("local[1]").config("spark.ui.enabled", "false")
    val lines = logged {
      val started = late.getOrCreate()
      try for (_ <- 1 to 2) PythonApi.register(started)
      finally started.stop()
    }
    assert(lines.size === 1, lines)
    assert(lines.head.contains(s"(${LoadedExtension.Missing})"), lines)
  }

  test("a line that cannot be written fails no session") {
    val extensions = new SparkSessionExtensions
    new SkewExtensions()(extensions)
    // Without a session there are no settings to read.
    val lines = logged {
      assert(TestSessions.resolutionRules(extensions, session = null).nonEmpty)
    }
    assert(lines.isEmpty)
    assert(Guard.failures.exists(_.contains("listing the parts in the log")))
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
