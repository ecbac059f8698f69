package io.github.skewext.join.probe

import io.github.skewext.Joins
import io.github.skewext.skew.plan.SkewReason
import io.github.skewext.skew.run.SplitJoinExec

import org.apache.spark.SparkConf
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.PartialReducerPartitionSpec
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec
import org.apache.spark.sql.execution.joins.ShuffledJoin
import org.apache.spark.sql.internal.SQLConf

/** Skewed partitions of joins that remain the same operator when they are split. */
class BuildProbeSkewSuite extends BuildProbeTest {

  override protected def sparkConf: SparkConf = super.sparkConf
    .set(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key, "true")
    .set(SQLConf.COALESCE_PARTITIONS_ENABLED.key, "false")
    .set(SQLConf.SKEW_JOIN_SKEWED_PARTITION_FACTOR.key, "1.5")
    .set(SQLConf.SKEW_JOIN_SKEWED_PARTITION_THRESHOLD.key, "2KB")
    .set(SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES.key, "2KB")

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    // Two thirds of the rows have one key. Eight tasks write them.
    spark
      .range(0, 3000, 1, 8)
      .selectExpr("if(id % 3 < 2, 7, id % 50) AS k", "id AS v", "hash(id) AS x")
      .write
      .mode("overwrite")
      .saveAsTable("skewed")
  }

  override protected def afterAll(): Unit = {
    spark.sql("DROP TABLE IF EXISTS skewed")
    super.afterAll()
  }

  /** The query, which has run and has Spark's rows. */
  private def checked(query: String): DataFrame = {
    val df = probe(query)
    assertSameRows(df.collect().toSeq, rowsWhenOff(df), "the same query with skewext off")
    df
  }

  private def slices(query: String): Int = {
    val df = checked(query)
    assert(probes(df).size === 1)
    collect(df.queryExecution.executedPlan) { case read: AQEShuffleReadExec =>
      read.partitionSpecs.count(_.isInstanceOf[PartialReducerPartitionSpec])
    }.sum
  }

  private val on = "a.k = b.k AND a.v < b.v + 40"

  private def exists(a: String, b: String, on: String) =
    s"SELECT * FROM $a a WHERE v < 5 OR EXISTS (SELECT 1 FROM $b b WHERE $on)"

  test("splits joins with a condition on both sides, on the side whose rows are independent") {
    for (joinType <- Seq("LEFT", "LEFT SEMI", "LEFT ANTI")) {
      assert(slices(s"SELECT a.* FROM skewed a $joinType JOIN small b ON $on") >= 2, joinType)
    }
    assert(slices(s"SELECT b.*, a.w FROM small a RIGHT JOIN skewed b ON $on") >= 2)
  }

  test("splits existence joins") {
    val query = exists("skewed", "small", "a.k = b.k")
    assert(slices(query) >= 2)
    val df = probe(query)
    df.collect()
    assert(Joins.explain(df).toString.contains("skew: split, 1 partition in "))
  }

  test("leaves partitions whole whose rows decide about rows of the other side") {
    assert(slices(s"SELECT * FROM small a LEFT JOIN skewed b ON $on") === 0)
    assert(slices(s"SELECT * FROM skewed a FULL JOIN small b ON $on") === 0)
    for {
      (query, reason) <- Seq(
        s"SELECT * FROM small a LEFT JOIN skewed b ON $on" -> SkewReason.OuterCondition,
        s"SELECT * FROM small a LEFT SEMI JOIN skewed b ON $on" -> SkewReason.OuterCondition,
        s"SELECT * FROM small a LEFT ANTI JOIN skewed b ON $on" -> SkewReason.OuterCondition,
        exists(
          "small",
          "skewed",
          "a.k = b.k AND hash(a.v, b.v, b.x) % 5 < 4") -> SkewReason.JoinType)
    } withClue(s"$query: ") {
      val df = checked(query)
      val found = Joins.explain(df).toString
      assert(!found.contains("skew: split") && found.contains(reason.text))
    }
  }

  private val joinTypes = Seq("INNER", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI")

  private val chains = for {
    lower <- joinTypes
    ofLower <- Seq("", "AND a.v < b.v + 40", "AND a.v > 900")
    upper <- joinTypes
    ofUpper <- Seq("", "AND l.v < c.v + 40", "AND c.v > 9")
  } yield (lower, ofLower, upper, ofUpper)

  test("two joins on one key in one stage, each with a condition or without") {
    // A semi join with a condition is no part of the join above it, which would lose the condition.
    val needed = for (upper <- joinTypes) yield ("LEFT SEMI", "AND a.v < b.v + 40", upper, "")
    val split = (needed ++ covering(chains)).distinct.count {
      case (lower, ofLower, upper, ofUpper) =>
        val below = s"SELECT a.k, a.v FROM skewed a $lower JOIN small b ON a.k = b.k $ofLower"
        val query = s"SELECT l.* FROM ($below) l $upper JOIN small c ON l.k = c.k $ofUpper"
        withClue(s"$query: ") {
          collect(checked(query).queryExecution.executedPlan) {
            case join: SplitJoinExec => join
            case join: ShuffledJoin if join.isSkewJoin => join
          }.nonEmpty
        }
    }
    assert(split >= 6, s"only $split joins were split")
  }
}
