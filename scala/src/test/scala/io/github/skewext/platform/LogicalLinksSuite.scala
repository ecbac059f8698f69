package io.github.skewext.platform

import scala.collection.mutable

import io.github.skewext.ReplanningTest
import io.github.skewext.bucket.files.SortedFilesExec
import io.github.skewext.merge.{SpreadSourceNullKeys, UndoReplicatingSplits}
import io.github.skewext.shuffle.ColumnarFilterProjectExec
import io.github.skewext.skew.plan.SkewReason
import io.github.skewext.skew.run.KeySketchExec
import io.github.skewext.skew.split.RequiredLayout
import io.github.skewext.technique.CheckBroadcasts
import org.apache.logging.log4j.Level

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical.RepartitionByExpression
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike
import org.apache.spark.sql.functions._
import org.apache.spark.sql.skewext.TestSessions

/** Links of our nodes to the logical nodes that they were planned for. */
class LogicalLinksSuite extends ReplanningTest {

  private val RuleNames = "io\\.github\\.skewext\\.[\\w.]+".r

  /** The tables are bucketed by k, or by k and j, with one sorted file a bucket. */
  private def withBuckets(body: => Unit): Unit = withTable("b0", "b1", "b2") {
    for (i <- 0 until 3) {
      val by = if (i == 2) Seq("k", "j") else Seq("k")
      skewed(i, 90)
        .withColumn("j", col("k") % 3)
        .coalesce(1)
        .write
        .bucketBy(3, by.head, by.tail: _*)
        .sortBy(by.head, by.tail: _*)
        .saveAsTable(s"b$i")
    }
    body
  }

  private val bucketCases = Seq(
    Case(
      "sorted files",
      _.isInstanceOf[SortedFilesExec],
      _ => fullJoin("k")(spark.table("b0"), spark.table("b1"))),
    Case(
      "buckets by a filter",
      _ => true,
      inputs => fullJoin("k")(spark.table("b2").where("k = 4 AND j = 1").drop("j"), inputs.head)),
    Case(
      "buckets by keys of a broadcast",
      _ => true,
      _ => spark.table("b0").join(broadcast(small.where("small = 101")), Seq("k"))))

  private def isOurs(plan: SparkPlan): Boolean = plan.getClass.getName.contains("skewext")

  /** Pass rows on as Spark's exchanges do, and are planned anew each time. */
  private def needsNoLink(plan: SparkPlan): Boolean = plan match {
    case _: ShuffleExchangeLike | _: KeySketchExec => true
    case _ => false
  }

  test("each rule that changes a physical plan has a query here, and its nodes have links", Slow) {
    val fired = mutable.Set.empty[String]
    val rules = TestSessions
      .physicalRuleNames(spark) { case group: RuleGroup[_] => group.names }
      .filter(_.startsWith("io.github.skewext."))
    withBuckets {
      for (c <- cases ++ bucketCases) withClue(s"${c.name}: ") {
        val log = new LogAppender("changes of plans", maxEvents = 10000)
        withSQLConf(
          Adaptive ++ c.settings ++ Seq(
            "spark.sql.planChangeLog.level" -> "WARN",
            "spark.sql.planChangeLog.rules" -> rules.mkString(",")): _*) {
          val df = c.of((0 until 3).map(stored(_)))
          withLogAppender(log, level = Some(Level.WARN)) {
            val first = nodes(df.queryExecution.executedPlan match {
              case adaptive: AdaptiveSparkPlanExec => adaptive.initialPlan
              case plan => plan
            })
            df.collect()
            val last = nodes(df.queryExecution.executedPlan)
            assert(last.exists(c.isThere), df.queryExecution.executedPlan)
            for (node <- first ++ last if isOurs(node) && !needsNoLink(node)) {
              assert(node.logicalLink.isDefined, s"no link: $node")
            }
          }
        }
        val texts = log.loggingEvents.map(_.getMessage.getFormattedMessage)
        fired ++= texts.filter(_.contains("=== Applying Rule")).flatMap { text =>
          RuleNames.findFirstIn(text.split("===")(1))
        }
      }
    }
    // MergeSuite and MergeNullKeysSuite have queries for these.
    val ofMerge =
      Seq(UndoReplicatingSplits(SkewReason.MergeTarget), SpreadSourceNullKeys).map(_.ruleName)
    // The others leave tags or stop a query.
    val changeNothing = Set(RequiredLayout, RequiredLayout.AfterExchanges, CheckBroadcasts)
      .map(_.ruleName) ++ ofMerge
    assert(fired.toSet === rules.toSet -- changeNothing)
  }

  test("a filter and a projection over a cached table stay when the table is read", Slow) {
    withSQLConf(Adaptive: _*) {
      val cached = stored(0).cache()
      try {
        cached.count()
        def query(a: DataFrame) =
          fullJoin("k")(a.where("v0 % 2 = 0 AND s0 > 3").select("s0", "k"), stored(1), stored(2))
        val df = query(cached)
        val rows = df.collect().toSeq
        val plan = df.queryExecution.executedPlan
        assert(nodes(plan).exists(_.isInstanceOf[ColumnarFilterProjectExec]), plan)
        assertSameRows(rows, rowsWhenOff(query(stored(0))), "Spark's plan of the files")
      } finally spark.catalog.clearCache()
    }
  }

  test("the exchange of a user's repartition stays linked to it") {
    withSQLConf(Adaptive: _*) {
      val inputs = (0 until 3).map(stored(_).repartition(shufflePartitions, col("k")))
      val df = fullJoin("k")(inputs: _*)
      checkJoin(df)
      val links = exchanges(df).flatMap(_.logicalLink)
      assert(exchanges(df).size === 3, df.queryExecution.executedPlan)
      assert(links.count(_.isInstanceOf[RepartitionByExpression]) === 3, links)
    }
  }
}
