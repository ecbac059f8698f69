package io.github.skewext

import scala.collection.mutable
import scala.util.Random

import org.apache.spark.sql.execution.adaptive.TableCacheQueryStageExec
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec
import org.apache.spark.sql.{AnalysisException, DataFrame}

/**
 * Adaptive execution plans a query again after each kind of stage, which is below, beside or above each
 * kind of node of ours. The rows are those of the same query without cached tables and without us.
 */
class ReplanningSuite extends ReplanningTest {

  private val places: Seq[(String, (Case, Change, Boolean) => DataFrame)] = {
    def inputs: Seq[DataFrame] = (0 until 3).map(stored(_))
    def changed(i: Int)(c: Case, change: Change, plain: Boolean): DataFrame =
      c.of(inputs.updated(i, change.input(inputs(i), plain)))
    Seq(
      "below" -> changed(0) _,
      "beside" -> changed(2) _,
      "above" -> ((c, change, plain) => change.result(c.of(inputs), plain)))
  }

  private val seen = mutable.Map.empty[String, Int].withDefaultValue(0)

  private def check(c: Case, change: Change, build: (Case, Change, Boolean) => DataFrame): Unit =
    withSQLConf(Adaptive ++ c.settings: _*) {
      try {
        val expected = rowsWhenOff(build(c, change, true))
        val df = build(c, change, false)
        val rows = df.collect().toSeq
        assertSameRows(rows, expected, s"Spark's plan; ours is ${df.queryExecution.executedPlan}")
        val ran = nodes(df.queryExecution.executedPlan)
        seen("compared") += 1
        if (ran.exists(c.isThere)) seen("node") += 1
        if (ran.exists(_.isInstanceOf[TableCacheQueryStageExec])) seen("cache") += 1
        if (change.name.startsWith("changed") && ran.exists(_.isInstanceOf[BroadcastHashJoinExec]))
          seen("join strategy") += 1
      } catch {
        // A technique that reads a side twice says so of inputs that are not repeatable.
        case e: AnalysisException if e.getMessage.contains("cannot do this join") =>
          seen("refused") += 1
      } finally spark.catalog.clearCache()
    }

  private val all = for {
    c <- cases
    change <- Changes.all
    place <- places
  } yield (c, change, place)

  private val tried = if (testAll) new Random(4).shuffle(all).take(84) else covering(all)

  for ((name, some) <- tried.groupBy(_._1.name).toSeq.sortBy(_._1)) {
    test(
      s"the rows are right when the plan changes: $name",
      Slow(
        "Spark's joins in place of the operator",
        "broadcast side with unmatched rows",
        "filters and projections of batches",
        "latest rows",
        "multi-way join of columns",
        "roles",
        "sampled keys of Spark's joins",
        "split by force",
        "split of an as-of join")) {
      for ((c, change, (place, build)) <- some) {
        withClue(s"$place: ${change.name}: ")(check(c, change, build))
      }
    }
  }

  testOfAll("plans did change, and most of them had the node") {
    assert(seen("cache") > 0 && seen("join strategy") > 0, seen)
    assert(seen("compared") > 0.8 * tried.size && seen("node") > 0.5 * tried.size, seen)
  }
}
