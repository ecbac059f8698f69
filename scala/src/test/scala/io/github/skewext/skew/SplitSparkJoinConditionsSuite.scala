package io.github.skewext.skew

import io.github.skewext.skew.plan.SkewReason

import org.apache.spark.sql.execution.joins.ShuffledJoin
import org.apache.spark.sql.functions._
import org.apache.spark.sql.internal.SQLConf

/** Conditions besides the keys of Spark's joins, and several joins that become one. */
class SplitSparkJoinConditionsSuite extends SplitSparkJoinTest {

  test("a condition besides the keys: a filter of an inner join, a veto for others", Slow) {
    val condition = col("l") === col("r") && col("v0") > col("v1")
    val oneMap = skewed(0, 800, 2, maps = 1).withColumnRenamed("k", "l")
    checkSplit(oneMap.join(right(0), condition, "inner"))
    for (how <- Seq("full", "left_anti")) {
      val df = left(2).join(right(2).limit(100), condition, how)
      checkWhole(df)
      if (how == "full") assert(reasons(df).contains(SkewReason.OuterCondition))
    }
    for (how <- Seq("left_semi", "left_anti")) {
      val df = left(0).join(right(2), condition, how)
      checkWhole(df)
      assert(reasons(df) === Seq(SkewReason.OuterCondition))
    }
  }

  test("conditions on one side besides the keys", Slow) {
    def keys = col("l") === col("r")
    val ofLeft = keys && col("v0") > 20
    val ofRight = keys && col("s1") =!= "s1"
    val cases = Seq("merge" -> ofLeft, "shuffle_hash" -> ofRight, "merge" -> (ofLeft && ofRight))
    for ((hint, condition) <- some(2, cases)) {
      withClue(s"$hint, $condition: ") {
        for ((l, r) <- Seq((2, 0), (0, 2))) {
          checkSplit(left(l).join(right(r).hint(hint), condition, "full"))
        }
        checkSplit(left(2).join(right(0).hint(hint), condition, "right"))
        for (how <- Seq("left", "left_semi", "left_anti")) {
          checkSplit(left(0).join(right(2).hint(hint), condition, how))
        }
      }
    }
    withSQLConf(SQLConf.ANSI_ENABLED.key -> "true") {
      // No row of the key with v1 = 0 is in the left table: Spark divides by none.
      val divides = keys && lit(100) / col("v1") > 1
      val whole = left(2).join(right(0).hint("merge"), divides, "full")
      checkWhole(whole)
      assert(reasons(whole) === Seq(SkewReason.ConditionMayFail))
      val compares = keys && (col("v1") > 7 || col("s1").startsWith("a")) && col("v0").isNotNull
      checkSplit(left(2).join(right(0).hint("merge"), compares, "full"))
    }
    // A row that matches nothing in one join may do so in the next on the key: they stay two.
    val chain = left(2)
      .join(right(0).hint("merge"), ofLeft, "left")
      .join(skewed(2, 60).withColumnRenamed("k", "c").hint("merge"), col("l") === col("c"), "left")
    assert(checkSplit(chain).children.size === 2)
  }

  test("joins on one key in one stage become one", Slow) {
    val c = skewed(2, 60).withColumnRenamed("k", "c")
    val d = skewed(3, 60).withColumnRenamed("k", "d")
    def chains(hint: String) = {
      val inner = join(left(2), right(0), "inner", hint)
      Seq(
        inner.join(c.hint(hint), col("l") === col("c"), "inner"),
        inner.join(c.hint(hint), col("r") === col("c"), "left"),
        inner.join(c.hint(hint), col("l") === col("c"), "left_anti"),
        inner
          .select(col("r").as("x"), col("v0").as("y"))
          .join(c.hint(hint), col("x") === col("c") && col("y") > col("v2"), "inner")
          .select("y", "x", "s2"),
        join(left(2), right(0), "left", hint)
          .join(c.hint(hint), col("l") === col("c"), "inner")
          .join(d.hint(hint), col("l") === col("d"), "left"))
    }
    val cases = for (hint <- hints; chain <- chains(hint).indices) yield (hint, chain)
    for ((hint, chain) <- covering(cases)) {
      val df = chains(hint)(chain)
      val split = checkSplit(df)
      assert(split.children.size === exchanges(df).size)
      assert(!splitBySpark(df))
      assert(df.schema === withSkewOff(again(df).schema))
    }
  }

  test(
    "conditions of a lower join, and filters and computations above it, stay where they are",
    Slow) {
    val c = skewed(2, 60).withColumnRenamed("k", "c").hint("merge")
    val inner = join(left(2), right(0), "inner", "merge")
    for (lower <- Seq(
        left(2).join(right(0).hint("merge"), col("l") === col("r") && col("v0") > col("v1") + 9),
        inner.where("v0 + v1 > 30"),
        inner.where("v0 + v1 > 30").select(col("l"), (col("v0") + col("v1")).as("v")),
        inner.select(col("l"), (col("v0") * 2).as("v")))) {
      val df = lower.join(c, col("l") === col("c"), "left")
      val split = checkSplit(df)
      assert(split.children.size === 2)
      // All rows that the operator gets are those that Spark's lower join gives.
      val Seq(below) = collect(split.children.head) { case j: ShuffledJoin => j }
      assert(below.metrics("numOutputRows").value >= lower.count())
    }
  }
}
