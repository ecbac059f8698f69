package io.github.skewext.explain

import io.github.skewext.asof.RewriteRowNumbers
import io.github.skewext.join.MultiFullJoinStrategy
import io.github.skewext.rules.{RuleGroup, SkewConf}
import io.github.skewext.{MultiJoinTest, PythonApi}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.TestSessions
import org.apache.spark.{SparkConf, SparkEnv}

/** Which parts of skewext are active, and why others are off. */
class DoctorSuite extends MultiJoinTest {

  override protected def sparkConf: SparkConf =
    super.sparkConf.set(SkewConf.LATEST_REWRITE.key, "true")

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
      SkewConf.SHUFFLE_ENABLED.key -> Set("columnar shuffle"),
      SQLConf.BUCKETING_ENABLED.key -> Set("bucket pruning", "merge of sorted bucket files"))
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
    assert(
      (Doctor.ruleNames -- names) ===
        Set(MultiFullJoinStrategy.ruleName, RewriteRowNumbers.ruleName))
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
    } finally conf.remove("spark.plugins")
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
    assert(json.contains("""{"name":"multi-way joins","active":true,"reason":null}"""))
    assert(sql("SELECT * FROM skewext_doctor()").collect().map(_.getString(0)).toSeq === Seq(json))
    withSQLConf("spark.databricks.photon.enabled" -> "true") {
      assert(PythonApi.doctor(spark).contains("compute without Photon"))
    }
  }
}
