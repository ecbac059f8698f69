package io.github.skewext.explain

import io.github.skewext.internal.BuildInfo
import io.github.skewext.join.MultiFullJoinStrategy
import io.github.skewext.join.probe.PlanShuffledJoins
import io.github.skewext.join.range.PlanRangeJoins
import io.github.skewext.latest.RewriteRowNumbers
import io.github.skewext.platform.{LoadedExtension, RuleGroup, SkewConf}
import io.github.skewext.{MultiJoinTest, PythonApi}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.expressions.Window
import org.apache.spark.sql.functions.row_number
import org.apache.spark.sql.internal.{SQLConf, StaticSQLConf}
import org.apache.spark.sql.skewext.TestSessions
import org.apache.spark.{SparkConf, SparkEnv}

/** Which parts of skewext are active, and why others are off. */
class DoctorSuite extends MultiJoinTest {

  override protected def sparkConf: SparkConf =
    super.sparkConf
      .set(SkewConf.LATEST_REWRITE.key, "true")
      .set(SkewConf.JOIN_ENABLED.key, "true")

  private def off(session: SparkSession = spark): Map[String, String] =
    Doctor.reasons(session).collect { case (name, Some(reason)) => name -> reason }.toMap

  /** Tests have no UI, and set no provider of Spark 4. */
  private lazy val always = Set("tab in Spark's UI", "joins in Spark's EXPLAIN")
    .intersect(Doctor.reasons(spark).map(_._1).toSet)

  test("with the extension all parts are active that need nothing else") {
    val session = spark.newSession()
    session.conf.set(SkewConf.MULTI_JOIN_REWRITE.key, "true")
    assert(off(session).keySet === always)
  }

  test("a setting switches off its parts, and the master switch all but by name") {
    val reasons = Seq(
      SkewConf.SKEW_ENABLED.key -> Set(
        "splits of skewed partitions",
        "key sampling for splits",
        "splits of a MERGE"),
      SkewConf.MULTI_JOIN_REWRITE.key -> Set("rewritten chains of joins", "rewritten as-of joins"),
      SkewConf.LATEST_REWRITE.key -> Set("rewritten row numbers"),
      SkewConf.JOIN_ENABLED.key -> Set("joins of two sides"),
      SkewConf.RANGE_JOIN_ENABLED.key -> Set("range joins"),
      SkewConf.OR_JOIN_ENABLED.key -> Set("joins with OR"),
      SkewConf.SHUFFLE_ENABLED.key -> Set("columnar shuffle"),
      SQLConf.BUCKETING_ENABLED.key -> Set("bucket pruning", "order of sorted buckets"))
    reasons.foreach { case (key, parts) =>
      withSQLConf(SkewConf.MULTI_JOIN_REWRITE.key -> "true", key -> "false") {
        assert(off() -- always === parts.map(_ -> s"$key is false").toMap)
      }
    }
    withSQLConf(Off) {
      val active = Doctor.reasons(spark).collect { case (name, None) => name }
      assert(active === Seq("point-in-time joins", "table functions for SQL"))
    }
    withSQLConf(SkewConf.SKEW_OUTPUT_MODE.key -> "off") {
      assert(off()("key sampling for splits") === s"${SkewConf.SKEW_OUTPUT_MODE.key} is off")
    }
  }

  test("a summary in one line names each reason once") {
    def end(reasons: (String, Option[String])*) = Doctor.summary(reasons).split(": ", 2).last
    assert(end("a" -> None, "b" -> None) === "2 of 2 parts are active")
    assert(
      end("a" -> Some("x is false"), "b" -> None, "c" -> Some("y"), "d" -> Some("x is false")) ===
        "1 of 4 parts are active; off: a, d (x is false); c (y)")
  }

  test("a summary counts parts that the session needs") {
    val needed = Doctor.reasons(spark).filterNot(_._1 == "tab in Spark's UI")
    val active = needed.count(_._2.isEmpty)
    val line = Doctor.summary(spark)
    assert(line.startsWith(s"skewext ${BuildInfo.version} for Spark ${BuildInfo.sparkLine} on "))
    assert(line.contains(s": $active of ${needed.size} parts are active"), line)
    withSQLConf(SkewConf.SKEW_ENABLED.key -> "false") {
      val off = "splits of skewed partitions, key sampling for splits, splits of a MERGE " +
        s"(${SkewConf.SKEW_ENABLED.key} is false)"
      assert(Doctor.summary(spark).contains(off))
    }
  }

  test("excluded rules, by both settings") {
    for (key <- Seq(SkewConf.EXCLUDED_RULES.key, SQLConf.OPTIMIZER_EXCLUDED_RULES.key)) {
      withSQLConf(SkewConf.MULTI_JOIN_REWRITE.key -> "true", key -> "RewriteJoinChains") {
        assert(
          off()("rewritten chains of joins") ===
            "the rule RewriteJoinChains is excluded by a setting")
      }
    }
  }

  test("a setting with spaces around it, as Spark reads it") {
    withSQLConf(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> " true ") {
      assert(!off().contains("splits of skewed partitions"))
    }
  }

  test("the rules of parts exist") {
    val names = TestSessions.ruleNames(spark) { case group: RuleGroup[_] => group.names }
    val strategies = Set(
      MultiFullJoinStrategy.ruleName,
      RewriteRowNumbers.ruleName,
      PlanRangeJoins.ruleName,
      PlanShuffledJoins.ruleName)
    assert(Doctor.ruleNames -- names === strategies)
  }

  test("some plugins replace shuffles") {
    val conf = SparkEnv.get.conf
    val server = "org.apache.spark.sql.connect.SparkConnectPlugin"
    try {
      // They start the server of Spark Connect, or monitor, and replace nothing.
      conf.set("spark.plugins", s"$server,io.dataflint.spark.SparkDataflintPlugin")
      assert(!off().contains("columnar shuffle"))
      conf.set("spark.plugins", s"$server, com.nvidia.spark.SQLPlugin")
      val found = off()
      assert(
        found("columnar shuffle") ===
          "it needs Spark's own exchanges, and spark.plugins names com.nvidia.spark.SQLPlugin")
      assert(found.contains("key sampling for splits"))
      // The explanation of a query says the same.
      val first = spark.range(3).withColumn("n", row_number().over(byId)).where("n = 1")
      val note = Explainer.explain(first.queryExecution).notes.mkString
      assert(note.endsWith(s": ${found("rewritten row numbers")}."), note)
    } finally conf.remove("spark.plugins")
  }

  private def byId = Window.partitionBy("id").orderBy("id")

  test("why the extension is missing, from the setting") {
    val bare = TestSessions.withoutExtensions(spark)
    val key = StaticSQLConf.SPARK_SESSION_EXTENSIONS.key
    for ((value, why) <- Seq(
        "" -> s"$key is not set",
        "a.B" -> s"$key is a.B, without io.github.skewext.SkewExtensions",
        "a.B, io.github.SkewExt" ->
          s"$key names io.github.SkewExt, and the class is io.github.skewext.SkewExtensions",
        "io.github.skewext.SkewExtensions" ->
          s"$key names the class, but the session started without the jar")) {
      bare.sessionState.conf.setConfString(key, value)
      assert(LoadedExtension.whyMissing(bare) === why)
      val note = s"The extension is missing: $why. spark.jars is not set."
      assert(PythonApi.doctor(bare).contains(note))
      val explained = Explainer.explain(bare.range(1).queryExecution).notes
      assert(explained.exists(_.contains(s"Spark plans all joins alone: $why.")))
    }
  }

  test("a part that has nothing to do is not needed") {
    val json = PythonApi.doctor(spark)
    assert(
      json.contains("""{"name":"tab in Spark's UI","active":false,"reason":""" +
        """"Spark's UI and its event log are off","needed":false}"""))
  }

  test("sessions without the extension, and such that registered late") {
    val bare = TestSessions.withoutExtensions(spark)
    assert(off(bare).size === Doctor.reasons(bare).size)
    assert(off(bare).values.toSet === Set("the session was started without skewext"))
    PythonApi.register(bare)
    val late = Set("multi-way joins", "point-in-time joins", "techniques of skew_join")
    assert((Doctor.reasons(bare).map(_._1).toSet -- off(bare).keySet) === late)
  }

  test("JSON for programs, also by SQL") {
    val json = PythonApi.doctor(spark)
    assert(
      json.contains("""{"name":"multi-way joins","active":true,"reason":null,"needed":true}"""))
    assert(sql("SELECT * FROM skewext_doctor()").collect().map(_.getString(0)).toSeq === Seq(json))
    withSQLConf("spark.databricks.photon.enabled" -> "true") {
      assert(PythonApi.doctor(spark).contains("compute without Photon"))
    }
  }
}
