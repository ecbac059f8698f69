package io.github.skewext.join.probe

import io.github.skewext.Joins
import io.github.skewext.platform.SkewConf

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical.Join
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike
import org.apache.spark.sql.execution.joins._
import org.apache.spark.sql.internal.SQLConf

/** Which joins the operator runs, and which stay Spark's. */
class PlanShuffledJoinsSuite extends BuildProbeTest {

  private val query = "SELECT * FROM large a JOIN small b ON a.k = b.k"

  private def sparks(df: DataFrame): Seq[BaseJoinExec] = {
    df.collect()
    collect(df.queryExecution.executedPlan) {
      case join: BaseJoinExec if !join.isInstanceOf[BuildProbeJoinExec] => join
    }
  }

  private def explained(df: DataFrame): String = Joins.explain(df).toString

  test("replaces sort-merge joins and shuffled hash joins") {
    for (prefersSort <- Seq("true", "false"); adaptive <- Seq("true", "false")) {
      withSQLConf(
        SQLConf.PREFER_SORTMERGEJOIN.key -> prefersSort,
        SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> adaptive) {
        val df = probe(query)
        assert(sparks(df).isEmpty && probes(df).size === 1)
        assert(explained(df).contains("run by skewext: each task builds its smaller side"))
      }
    }
  }

  test("the explanation has the sides that tasks built") {
    val df = probe(query)
    df.collect()
    assert(explained(df).contains("(right in "))
    withSQLConf(SkewConf.MULTI_JOIN_MAX_ROWS_IN_MEMORY.key -> "3") {
      val sorted = probe(query)
      sorted.collect()
      assert(explained(sorted).contains("sorted both sides"))
    }
  }

  test("joins with a hint of the user stay Spark's") {
    val operators = Seq(
      "MERGE" -> classOf[SortMergeJoinExec],
      "SHUFFLE_HASH" -> classOf[ShuffledHashJoinExec],
      "BROADCAST" -> classOf[BroadcastHashJoinExec],
      "SHUFFLE_REPLICATE_NL" -> classOf[CartesianProductExec])
    for ((hint, operator) <- operators) {
      val df = probe(query.replace("SELECT", s"SELECT /*+ $hint(b) */"))
      assert(sparks(df).map(_.getClass) === Seq(operator))
      assert(probes(df).isEmpty)
      if (hint == "MERGE") assert(explained(df).contains(ProbeReason.Hint.text))
    }
  }

  test("a switch turns the operator off") {
    withSQLConf(SkewConf.JOIN_ENABLED.key -> "false") {
      val df = probe(query)
      assert(sparks(df).map(_.getClass) === Seq(classOf[SortMergeJoinExec]))
      assert(explained(df).contains(ProbeReason.SwitchedOff.text))
    }
    withSQLConf(SkewConf.EXCLUDED_RULES.key -> PlanShuffledJoins.ruleName) {
      assert(sparks(probe(query)).map(_.getClass) === Seq(classOf[SortMergeJoinExec]))
    }
  }

  test("joins stay Spark's if Spark alone splits skewed partitions") {
    withSQLConf(
      SkewConf.SKEW_ENABLED.key -> "false",
      SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> "true") {
      val df = probe(query)
      assert(sparks(df).map(_.getClass) === Seq(classOf[SortMergeJoinExec]))
      assert(explained(df).contains(ProbeReason.Splits.text))
      withSQLConf(SQLConf.SKEW_JOIN_ENABLED.key -> "false") {
        assert(sparks(probe(query)).isEmpty)
      }
    }
  }

  test("a side that is small enough is broadcast, also if that is known only at run time") {
    withSQLConf(SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key -> "10MB") {
      assert(sparks(probe(query)).map(_.getClass) === Seq(classOf[BroadcastHashJoinExec]))
    }
    withSQLConf(
      SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key -> "1",
      SQLConf.ADAPTIVE_AUTO_BROADCASTJOIN_THRESHOLD.key -> "10MB",
      SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> "true") {
      val df = probe(query)
      assert(sparks(df).map(_.getClass) === Seq(classOf[BroadcastHashJoinExec]))
      assertSameRows(df.collect().toSeq, rowsWhenOff(df), "Spark")
    }
  }

  test("a broadcast that has begun stays one, and the join above it is planned again") {
    def size(query: String) = probe(query).queryExecution.optimizedPlan.stats.sizeInBytes
    val small = "SELECT k, v FROM small"
    // Its last stage begins when the broadcast has ended.
    val one = "SELECT k, v, count(*) AS n FROM large WHERE v < 3 GROUP BY k, v"
    val few = s"SELECT k, sum(n) FROM ($one) GROUP BY k"
    assert(size(small) < size(few))
    withSQLConf(
      SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key -> size(small).toString,
      // Smaller than the rows that are broadcast by now.
      SQLConf.ADAPTIVE_AUTO_BROADCASTJOIN_THRESHOLD.key -> "200",
      SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> "true") {
      val df = probe(
        "SELECT * FROM (SELECT k, count(*) AS n FROM large GROUP BY k) a " +
          s"JOIN ($small) b ON a.k = b.k JOIN ($few) c ON a.k = c.k")
      assert(sparks(df).map(_.getClass) === Seq.fill(2)(classOf[BroadcastHashJoinExec]))
      assert(probes(df).isEmpty)
      assertSameRows(df.collect().toSeq, rowsWhenOff(df), "Spark")
    }
  }

  test("joins without equal keys stay Spark's") {
    val df = probe("SELECT * FROM large a JOIN small b ON a.v < b.v AND b.v < 3")
    assert(sparks(df).size === 1 && probes(df).isEmpty)
  }

  test("joins stay Spark's if Spark may read several of their buckets as one") {
    withTable("eight", "four") {
      for ((name, buckets) <- Seq("eight" -> 8, "four" -> 4)) {
        spark
          .range(60)
          .selectExpr("id % 20 AS k", "id AS v")
          .write
          .bucketBy(buckets, "k")
          .saveAsTable(name)
      }
      def joined(left: String) = probe(s"SELECT * FROM $left a JOIN four b ON a.k = b.k")
      withSQLConf(SQLConf.COALESCE_BUCKETS_IN_JOIN_ENABLED.key -> "true") {
        val df = joined("eight")
        assert(sparks(df).map(_.getClass) === Seq(classOf[SortMergeJoinExec]))
        assert(collect(df.queryExecution.executedPlan) { case e: ShuffleExchangeLike => e }.isEmpty)
        assert(explained(df).contains(ProbeReason.CoalescedBuckets.text))
        assertSameRows(df.collect().toSeq, rowsWhenOff(df), "Spark")
        assert(sparks(joined("large")).isEmpty)
      }
      assert(sparks(joined("eight")).isEmpty)
    }
  }

  test("streams stay Spark's") {
    val stream = spark.readStream.format("rate").load().selectExpr("value AS k")
    val joined = stream.join(spark.table("small"), "k")
    val reasons = joined.queryExecution.analyzed.collect { case join: Join =>
      PlanShuffledJoins.whyNot(join)
    }
    assert(reasons === Seq(Some(ProbeReason.Streaming)))
  }

  test("metrics count what tasks built and looked up") {
    val df = probe(query)
    val rows = df.collect().length
    val Seq(join) = probes(df)
    val counted = join.metrics.map { case (name, metric) => name -> metric.value }
    assert(counted("numOutputRows") === rows)
    assert(counted("numBuildRows") === 54)
    assert(counted("numProbeRows") === 221)
    assert(counted("buildDataSize") > 0 && counted("numBuiltRight") > 0)
    assert(counted("numSorted") === 0)
  }

  test("a join with small inputs and many rows is not built") {
    withSQLConf(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> "true") {
      val rows = "(SELECT id % 300 AS k, id AS v FROM range(0, 9000, 1, 2))"
      val pairs = "(SELECT a.k FROM few a JOIN few b ON a.k = b.k AND a.v <> b.v)"
      withTempView("few") {
        spark
          .sql("SELECT id % 300 AS k, id % 7 AS v FROM range(0, 6000, 1, 2)")
          .createOrReplaceTempView("few")
        for (on <- Seq("EXISTS", "NOT EXISTS")) {
          val query = s"SELECT * FROM $rows r WHERE $on (SELECT 1 FROM $pairs p WHERE p.k = r.k)"
          val df = probe(query)
          df.collect()
          val above = probes(df).find(_.joinType != Inner).get
          assert(probes(df).size === 2)
          assert(above.metrics("numBuildRows").value === 9000, df.queryExecution.executedPlan)
          checkProbe(query)
        }
      }
    }
  }

  test("Spark replans a query above, below and beside the join") {
    withSQLConf(
      SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> "true",
      SQLConf.ADAPTIVE_AUTO_BROADCASTJOIN_THRESHOLD.key -> "10MB",
      SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key -> "1") {
      val joins =
        "SELECT a.k, count(*) AS n FROM large a FULL JOIN small b ON a.k = b.k GROUP BY a.k"
      val df = probe(s"SELECT * FROM ($joins) j JOIN large c ON j.n = c.v AND c.w > 1")
      assertSameRows(df.collect().toSeq, rowsWhenOff(df), "Spark")
    }
  }
}
