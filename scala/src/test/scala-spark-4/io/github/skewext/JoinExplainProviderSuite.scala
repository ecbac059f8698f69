package io.github.skewext

import io.github.skewext.join.probe.ProbeReason
import io.github.skewext.platform.SkewConf
import io.github.skewext.rewrite.{RewriteJoinChains, RewriteReason}
import io.github.skewext.skew.SkewTest
import org.apache.spark.sql.skewext.{SqlInternals, TestSessions}

import org.apache.spark.SparkConf
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.classic.DataFrame
import org.apache.spark.sql.execution.{ExplainMode, LeafExecNode, SparkPlan}
import org.apache.spark.sql.internal.SQLConf

/** Spark's own EXPLAIN has our reasons. */
class JoinExplainProviderSuite extends SkewTest {

  private val Provider = classOf[JoinExplainProvider].getName

  override protected def sparkConf: SparkConf = super.sparkConf
    .set(SQLConf.EXTENDED_EXPLAIN_PROVIDERS.key, Provider)
    .set(SkewConf.MULTI_JOIN_REWRITE.key, "true")

  private val Title = "== Extended Information (skewext) ==\n"

  private def chain(keys: String*): String =
    s"SELECT * FROM t0 FULL JOIN t1 ${keys(0)} FULL JOIN t2 ${keys(1)}"

  private val Rewritten = chain("USING (k)", "USING (k)")
  private val Partial = chain("ON t0.k = t1.k", "ON t0.k = t2.k")

  private def withTables(body: => Unit): Unit = withTempView("t0", "t1", "t2") {
    (0 until 3).foreach(i => skewed(i, 60).createOrReplaceTempView(s"t$i"))
    body
  }

  /** The text that we add to Spark's. */
  private def added(text: String): String = {
    assert(text.split(Title.replaceAll("[()]", "\\\\$0"), -1).length === 2, text)
    text.substring(text.indexOf(Title) + Title.length).trim
  }

  private def explained(query: String, mode: String = ""): String =
    added(sql(s"EXPLAIN $mode $query").collect().map(_.getString(0)).mkString)

  test("EXPLAIN shows a rewritten join") {
    withTables {
      for (mode <- Seq("", "EXTENDED", "FORMATTED"))
        assert(
          explained(Rewritten, mode) ===
            "Join 1: full outer join of 3 inputs on [k]\n" +
            "  rewritten: 2 full outer joins became one operator",
          mode)
    }
  }

  test("EXPLAIN shows why a join is not rewritten") {
    withTables {
      val text = explained(Partial)
      assert(text.startsWith("Join 1: SortMergeJoin full outer [k = k], SortMergeJoin"), text)
      assert(text.contains(s"\n  not rewritten: ${RewriteReason.PartialKey.text} (t0.k)\n    For"))
      assert(text.linesIterator.size === 3, text)
    }
  }

  test("after the query has run, EXPLAIN shows its splits") {
    val df = fullJoin("k")(skewed(0, 800, hot = 2), skewed(1, 60))
    val split = checkSplit(df)
    val text = added(df.queryExecution.explainString(ExplainMode.fromString("formatted")))
    assert(
      text.startsWith(
        s"Join 1: full outer join of 2 inputs on [k]\n  asked for: one operator\n" +
          s"  skew: split, ${split.splits.describe}; not shorter: "),
      text)
    assert(text.linesIterator.size === 4, text)
    val whole = fullJoin("k")(skewed(0, 60), skewed(1, 60))
    whole.collect()
    assert(
      added(whole.queryExecution.explainString(ExplainMode.fromString("simple")))
        .endsWith("asked for: one operator\n  skew: not split: no partition is skewed"))
  }

  test("there is no text without a join, none where skewext is off, and no rewrite if excluded") {
    withTables {
      assert(explained("SELECT k, count(*) FROM t0 GROUP BY k") === "")
      withSQLConf(Off) {
        assert(explained(Rewritten) === "")
        assert(explained(Partial) === "")
      }
      for (off <- Seq(
          SkewConf.EXCLUDED_RULES.key -> RewriteJoinChains.ruleName,
          // Spark knows only the group of our rules.
          SQLConf.OPTIMIZER_EXCLUDED_RULES.key -> RewriteJoinChains.ruleName,
          SQLConf.OPTIMIZER_EXCLUDED_RULES.key -> "RewriteJoinChains"))
        withSQLConf(off) {
          for (query <- Seq(Rewritten, Partial)) {
            val joins = "SortMergeJoin full outer [k = k], SortMergeJoin full outer [k = k]"
            assert(
              explained(query) === s"Join 1: $joins\n  not rewritten: " +
                s"${ProbeReason.SwitchedOff.text}\n    ${ProbeReason.SwitchedOff.advice}",
              off)
          }
        }
    }
    val bare = TestSessions.withoutExtensions(spark)
    bare.conf.set(SQLConf.EXTENDED_EXPLAIN_PROVIDERS.key, Provider)
    val df = bare.range(5).join(bare.range(6), "id").asInstanceOf[DataFrame]
    assert(added(df.queryExecution.explainString(ExplainMode.fromString("simple"))) === "")
  }

  test("EXPLAIN runs no job, and a failure of ours leaves its text empty") {
    withTables(assert(jobsOf(explained(Partial)) === 0))
    SqlInternals.withActive(spark) {
      Seq(Failing(new IllegalStateException("a bug")), Failing(new StackOverflowError)).foreach {
        plan =>
          assert(plan.session === spark)
          assert(new JoinExplainProvider().generateExtendedInfo(plan) === "")
      }
    }
  }
}

/** A node that fails when its subqueries are searched for joins. */
private case class Failing(error: Throwable) extends LeafExecNode {
  override def output: Seq[Attribute] = Nil
  override protected def doExecute(): RDD[InternalRow] = throw new UnsupportedOperationException
  override def subqueries: Seq[SparkPlan] = throw error
}
