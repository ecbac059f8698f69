package io.github.skewext

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.skewext.{SqlInternals, TestSessions}

/** Loading, loading twice, registering late, switching off, and failing without harm. */
class SkewExtensionsSuite extends MultiJoinTest {

  private def a = table("k, v", "(1, 1), (2, 2)")
  private def b = table("k, w", "(2, 20), (3, 30)")

  test("a session that was built with the extension has it") {
    assert(SkewExtensions.isLoaded(spark))
    assert(SkewExtensions.isRegistered(spark))
    assert(PythonApi.isExtensionLoaded(spark))
    assert(PythonApi.isEnabled(spark))
  }

  test("applied twice, it registers once") {
    val extensions = new SparkSessionExtensions
    new SkewExtensions()(extensions)
    new SkewExtensions()(extensions)
    val rules = TestSessions.optimizerRules(extensions, spark)
    assert(rules.nonEmpty)
    assert(rules.map(_.ruleName).distinct.size === rules.size)
  }

  test("a session without the extension registers late, once") {
    val bare = TestSessions.withoutExtensions(spark)
    assert(!SkewExtensions.isLoaded(bare))
    assert(!SkewExtensions.isRegistered(bare))
    PythonApi.register(bare)
    PythonApi.register(bare)
    assert(bare.experimental.extraStrategies.size === 1)
    assert(!PythonApi.isExtensionLoaded(bare))
    assert(PythonApi.isOperatorAvailable(bare))
    SqlInternals.withActive(bare) {
      val joined = fullJoin("k")(
        bare.sql("SELECT * FROM VALUES (0.0D, 1) AS t(k, v)"),
        bare.sql("SELECT * FROM VALUES (-0.0D, 2) AS t(k, w)"))
      assert(joined.collect().toSeq.map(_.toSeq) === Seq(Seq(0.0, 1, 2)))
      assert(operators(joined).size === 1)
      bare.conf.set(SkewConf.ENABLED.key, "false")
      val off = SqlInternals.dataFrame(bare, joined.queryExecution.analyzed)
      assert(off.collect().toSeq.map(_.toSeq) === Seq(Seq(0.0, 1, 2)))
      assert(operators(off).isEmpty)
    }
  }

  test("the master switch is read per query") {
    val joined = fullJoin("k")(a, b)
    assert(operators(again(joined)).size === 1)
    withSQLConf(Off) {
      assert(operators(again(joined)).isEmpty)
      assert(!PythonApi.isEnabled(spark))
    }
    assert(operators(again(joined)).size === 1)
  }

  test("a rule that fails leaves the plan as it was") {
    val plan = LocalRelation()
    Seq(new LinkageError("another Spark"), new IllegalStateException("a bug")).foreach { error =>
      val failing = GuardedRule(new Rule[LogicalPlan] {
        override def apply(plan: LogicalPlan): LogicalPlan = throw error
      })
      assert(failing(plan) eq plan)
      assert(failing(plan) eq plan)
    }
    intercept[OutOfMemoryError](Guard.protect("x", 1)(throw new OutOfMemoryError))
  }

  test("settings are Spark's own: a wrong value fails when it is set") {
    val e = intercept[IllegalArgumentException] {
      spark.conf.set(SkewConf.MULTI_JOIN_GROUPING.key, "merge")
    }
    assert(e.getMessage.contains("hash"))
    assert(
      spark.sql("SET -v").where("key LIKE 'spark.skewext.%'").count() >=
        SkewConf.entries.count(_.isPublic))
  }

  test("every setting is in the documentation once") {
    SkewConf.entries.filter(_.isPublic).foreach { e =>
      assert(SettingsDoc.text.split(s"`${e.key}`", -1).length === 2, e.key)
    }
    assert(!SettingsDoc.text.contains(SkewConf.MULTI_JOIN_HASH_BITS.key))
  }
}
