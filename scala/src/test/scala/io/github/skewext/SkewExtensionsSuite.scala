package io.github.skewext

import java.io.{IOException, InterruptedIOException}
import java.net.SocketTimeoutException

import scala.io.Source

import io.github.skewext.asof.RewriteSparkAsOfJoins
import io.github.skewext.function.KeepCommonTables
import io.github.skewext.join.optimizer.{LowerMultiFullJoin, PruneNestedColumns, PushKeyPredicates}
import io.github.skewext.join.probe.PlanShuffledJoins
import io.github.skewext.join.range.{DropRangeHints, PlanRangeJoins}
import io.github.skewext.join.{MultiFullJoin, MultiFullJoinStrategy}
import io.github.skewext.latest.RewriteRowNumbers
import io.github.skewext.platform.{Guard, GuardedRule, GuardedStrategy, LoadedExtension, LogicalJoinRules, RuleGroup, SkewConf}
import io.github.skewext.rewrite.RewriteJoinChains
import io.github.skewext.technique.ResolveSkewJoinHints

import org.apache.spark.SparkException
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.{SettingEntries, SqlInternals, TestExplained, TestSessions}
import org.apache.spark.sql.{DataFrame, SparkSessionExtensions}

/** Loading, loading twice, registering late, switching off, and failing without harm. */
class SkewExtensionsSuite extends MultiJoinTest {

  private def a = table("k, v", "(1, 1), (2, 2)")
  private def b = table("k, w", "(2, 20), (3, 30)")

  test("a session that was built with the extension has it") {
    assert(LoadedExtension.isIn(spark))
    assert(LoadedExtension.canPlanIn(spark))
    assert(LoadedExtension.className === classOf[SkewExtensions].getName)
    assert(PythonApi.isExtensionLoaded(spark))
    assert(PythonApi.isEnabled(spark))
  }

  test("without UI and event log one listener explains queries with joins, for reports") {
    assert(spark.sparkContext.uiWebUrl.isEmpty)
    assert(TestExplained.listeners(spark) === 1)
    checkJoin(fullJoin("k")(a, b))
    TestSessions.drainEvents(spark)
    val explained = TestExplained.of(spark).size
    assert(explained > 0)
    a.collect()
    withSQLConf(SkewConf.UI_ENABLED.key -> "false") {
      checkJoin(fullJoin("k")(b, a))
      TestSessions.drainEvents(spark)
    }
    assert(TestExplained.of(spark).size === explained)
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
    assert(!LoadedExtension.isIn(bare))
    assert(!LoadedExtension.canPlanIn(bare))
    PythonApi.register(bare)
    val strategies = bare.experimental.extraStrategies
    assert(strategies.nonEmpty)
    PythonApi.register(bare)
    assert(bare.experimental.extraStrategies === strategies)
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

  private class ConnectTimeoutException extends InterruptedIOException

  test("a cancelled query is not a rule that fails") {
    val cancelled = new SparkException("Job 7 cancelled part of cancelled job group g")
    for (error <- Seq(
        cancelled,
        new IllegalStateException(cancelled),
        new InterruptedIOException)) {
      val thrown = intercept[Exception](Guard.protect("a part", 1)(throw error))
      assert(thrown eq error)
    }
    // Hadoop's S3A wraps the exception of an HTTP client.
    for (timeout <- Seq(
        new SocketTimeoutException,
        new ConnectTimeoutException,
        new IOException(new ConnectTimeoutException)))
      assert(Guard.protect("a part", 1)(throw timeout) === 1)
  }

  test("a strategy that fails leaves the join to Spark's own") {
    val bare = TestSessions.withoutExtensions(spark)
    PythonApi.register(bare)
    val failing = GuardedStrategy(new SparkStrategy {
      override def apply(plan: LogicalPlan): Seq[SparkPlan] =
        if (plan.isInstanceOf[MultiFullJoin]) throw new IllegalStateException("a bug") else Nil
    })
    bare.experimental.extraStrategies = failing +: bare.experimental.extraStrategies.tail
    SqlInternals.withActive(bare) {
      val one = bare.sql("SELECT * FROM VALUES (0.0D, 1), (2.0D, 3) AS t(k, v)")
      val other = bare.sql("SELECT * FROM VALUES (-0.0D, 2) AS t(k, w)")
      val joined = multiJoin(Seq(one, other, one), Seq("k"), indicator = "i")
      assert(
        joined.collect().map(_.toSeq).toSet ===
          Set(Seq[Any](0.0, 1, 2, 1, Seq(0, 1, 2)), Seq[Any](2.0, 3, null, 3, Seq(0, 2))))
      assert(operators(joined).isEmpty)
    }
  }

  test("a query without a join runs none of our rules") {
    val query = a.where("k > 1").groupBy("k").count()
    // The analyzer runs rules before it is known what there is. They look for their own nodes.
    val asked = Set(
      classOf[LogicalJoinRules].getName,
      RewriteSparkAsOfJoins.ruleName,
      ResolveSkewJoinHints.ruleName,
      DropRangeHints.ruleName,
      KeepCommonTables.ruleName)
    assert(ourRules(query) === asked)
    // The group is asked in front of them. With a join, those of our own nodes do not run either.
    assert(ourRules(a.crossJoin(b)).contains(RewriteJoinChains.ruleName))
    assert(!ourRules(a.crossJoin(b)).contains(LowerMultiFullJoin.ruleName))
    assert(ourRules(fullJoin("k")(a, b)).contains(LowerMultiFullJoin.ruleName))
  }

  test("rules that change a plan are known by their names") {
    val pushed = fullJoin("k")(a, b).where("k > 1")
    assert(ourRules(pushed).contains(PushKeyPredicates.ruleName))
    val rules = pushed.queryExecution.tracker.rules
    assert(rules(PushKeyPredicates.ruleName).numEffectiveInvocations > 0)
    assert(rules(PruneNestedColumns.ruleName).numEffectiveInvocations === 0)
  }

  test("a rule is left out by its name") {
    for (name <- Seq(PushKeyPredicates.ruleName, "PushKeyPredicates")) {
      withSQLConf(SQLConf.OPTIMIZER_EXCLUDED_RULES.key -> s"x, $name") {
        val kept = fullJoin("k")(a, b).where("k > 1")
        assert(!ourRules(kept).contains(PushKeyPredicates.ruleName))
        assert(kept.queryExecution.optimizedPlan.collectFirst { case f: Filter => f }.isDefined)
        assert(checkJoin(kept).size === 2)
      }
    }
  }

  test("the page of rules has all of them, by the names that exclude them") {
    val registered = TestSessions.ruleNames(spark) { case group: RuleGroup[_] => group.names }
    val ours =
      registered.filter(_.startsWith("io.github.skewext.")) ++
        Seq(
          MultiFullJoinStrategy.ruleName,
          RewriteRowNumbers.ruleName,
          PlanShuffledJoins.ruleName,
          PlanRangeJoins.ruleName)
    val page = Source.fromFile(s"${sys.props("skewext.root")}/docs/rules.md", "UTF-8")
    val rows =
      try page.getLines().filter(_.startsWith("| `io.")).map(_.split('`')(1)).toList
      finally page.close()
    assert(ours.distinct.sorted === rows.sorted)
    assert(rows.distinct.size === rows.size)
  }

  test("every rule is left out by its name in our setting", Slow) {
    val names = TestSessions.ruleNames(spark) { case group: RuleGroup[_] => group.names }
    val hinted = "SELECT /*+ SKEWEXT_JOIN(b, broadcast_map) */ * FROM a FULL JOIN b USING (k)"
    withTempView("a", "b") {
      a.createOrReplaceTempView("a")
      b.createOrReplaceTempView("b")
      def plans: Seq[String] = {
        val asked = fullJoin("k")(a, b).where("k > 1")
        val chain = sql("SELECT * FROM a FULL JOIN b USING (k) FULL JOIN a AS c USING (k)")
        Seq(asked, chain, sql(hinted)).map { df =>
          assertSameRows(df.collect().toSeq, rowsWhenOff(df), "the same query with skewext off")
          df.queryExecution.executedPlan.toString
        }
      }
      val ours = Seq("MultiFullJoin", "MarkedBroadcastJoin", "by column")
      withSQLConf(SkewConf.MULTI_JOIN_REWRITE.key -> "true") {
        assert(ours.forall(word => plans.exists(_.contains(word))))
        withSQLConf(
          SkewConf.EXCLUDED_RULES.key -> (names :+ MultiFullJoinStrategy.ruleName).mkString(", ")) {
          assert(!ours.exists(word => plans.exists(_.contains(word))), plans)
        }
      }
    }
    object Changing extends Rule[LogicalPlan] {
      override def apply(plan: LogicalPlan): LogicalPlan = Filter(Literal.TrueLiteral, plan)
    }
    val plan = LocalRelation()
    assert(GuardedRule(Changing)(plan) ne plan)
    withSQLConf(SkewConf.EXCLUDED_RULES.key -> s"x,${Changing.ruleName}") {
      assert(GuardedRule(Changing)(plan) eq plan)
    }
  }

  test("a rule that fails does not stop the other rules of its group") {
    var runs = 0
    object Failing extends Rule[LogicalPlan] {
      override def apply(plan: LogicalPlan): LogicalPlan = throw new IllegalStateException("a bug")
    }
    object Counting extends Rule[LogicalPlan] {
      override def apply(plan: LogicalPlan): LogicalPlan = {
        runs += 1
        plan
      }
    }
    val group = new LogicalJoinRules(Seq(Failing, Counting), Nil)
    val join = fullJoin("k")(a, b).queryExecution.analyzed
    assert(group(join) eq join)
    assert(runs === 1)
    assert(group(LocalRelation()) === LocalRelation())
    assert(runs === 1)
    // Rules of our own nodes do not run where there are none.
    val ofOwn = new LogicalJoinRules(Seq(Counting), Seq(Counting))
    ofOwn(a.join(b, "k").queryExecution.analyzed)
    assert(runs === 1)
    ofOwn(join)
    assert(runs === 2)
  }

  test("a physical plan without a shuffled join runs none of our rules") {
    var runs = 0
    val group = new PhysicalJoinRules(new Rule[SparkPlan] {
      override def apply(plan: SparkPlan): SparkPlan = {
        runs += 1
        plan
      }
    })
    group(a.groupBy("k").count().queryExecution.sparkPlan)
    group(a.crossJoin(b).queryExecution.sparkPlan)
    assert(runs === 0)
    group(fullJoin("k")(a, b).queryExecution.sparkPlan)
    group(a.hint("merge").join(b, "k").queryExecution.sparkPlan)
    assert(runs === 2)
  }

  private def ourRules(df: DataFrame): Set[String] = {
    df.queryExecution.executedPlan
    df.queryExecution.tracker.rules.keySet.filter(_.startsWith("io.github.skewext."))
  }

  test("settings are Spark's own: a wrong value fails when it is set") {
    val e = intercept[IllegalArgumentException] {
      spark.conf.set(SkewConf.MULTI_JOIN_GROUPING.key, "merge")
    }
    assert(e.getMessage.contains("hash"))
    assert(
      spark.sql("SET -v").where("key LIKE 'spark.skewext.%'").count() >=
        SettingEntries.all.count(_.isPublic))
  }

  test("every setting is in the documentation once") {
    SettingEntries.all.filter(_.isPublic).foreach { e =>
      assert(SettingsDoc.text.split(s"`${e.key}`", -1).length === 2, e.key)
    }
    assert(!SettingsDoc.text.contains(SkewConf.MULTI_JOIN_HASH_BITS.key))
  }
}
