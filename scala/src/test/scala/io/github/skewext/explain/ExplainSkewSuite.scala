package io.github.skewext.explain

import io.github.skewext.nullkeys.SpreadNullKeys
import io.github.skewext.platform.SkewConf
import io.github.skewext.skew.plan.SkewReason

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.functions._

/** What `explain` says of splits, and of the partitions that stay whole. */
class ExplainSkewSuite extends ExplainTest {

  test("skew: split, in ours and in Spark's joins") {
    val ours = fullJoin("k")(skewed(0, 800, hot = 2), skewed(1, 60))
    ours.count()
    assert(
      one(ours).skew.map(s => s.status -> s.text) ===
        Seq(ExplainedSkew.NotRun -> ExplainedSkew.NotRunItself))
    val split = checkSplit(ours).splits
    val skew = one(ours).skew.head
    assert(skew.status === ExplainedSkew.Split)
    assert(skew.text.startsWith(split.describe))
    assert(
      (skew.partitions, skew.pieces, skew.residuals) ===
        ((split.partitions.size, split.pieces, split.residuals)))
    assert(one(ours).origin.status === Origin.AskedFor)

    val sparks = stock(left(2), "full")
    checkSplit(sparks)
    val explained = one(sparks)
    assert(explained.title === "SplitJoin full outer [l = k]")
    assert(explained.skew.map(_.status) === Seq(ExplainedSkew.Split))
    // What was done, and not what was not.
    assert(explained.origin === Origin(Origin.Split, "several tasks share its skewed partitions"))
    assert(explained.execution.isEmpty)

    val bySpark = stock(left(2), "inner")
    bySpark.collect()
    assert(
      one(bySpark).skew.map(s => s.status -> s.text) ===
        Seq(ExplainedSkew.Split -> SkewReason.SplitBySpark.text))
  }

  test("skew: left whole, for a reason") {
    val grouped = fullJoin("k")(skewed(0, 800, hot = 2), skewed(1, 60)).groupBy("k").count()
    byRow(grouped.collect())
    val skew = one(grouped).skew.head
    assert(skew.status === ExplainedSkew.Whole)
    assert(skew.text === SkewReason.KeysTogether.text)
    assert(skew.advice === Some(SkewReason.KeysTogether.advice))
    def together(df: DataFrame) = one(df).execution.get.nullKeys
    assert(
      together(grouped).startsWith(
        "in one task, unless it is split (an operator above or another join may"))
    val byKey = skewed(1, 60).groupBy("k").agg(max("v1").as("v1"))
    for (input <- Seq(byKey, skewed(1, 60).repartition(col("k")))) {
      assert(
        together(fullJoin("k")(skewed(0, 60), input)) ===
          "in one task, unless it is split (already partitioned by the key: input 1)")
    }
    val even = three
    even.collect()
    assert(one(even).skew.head.text === SkewReason.NotSkewed.text)
    assert(one(even).skew.head.advice.isEmpty)
  }

  test("skew: the limit that decides, and a value with which the longest task is shorter") {
    val Needed = """maxRereadFactor is [0-9.]+, ([0-9.]+) is enough""".r.unanchored
    def joined: DataFrame = {
      val hot = skewed(0, 3200, hot = 2, maps = 2).withColumnRenamed("k", "l")
      hot.join(skewed(1, 60), col("l") === col("k"), "full")
    }
    def longest(df: DataFrame) = splitJoins(df).head.splits.partitions.map(_.cost.longestTask).max
    val factor = SkewConf.SKEW_MAX_REREAD_FACTOR.key
    // With a gain of 3, two slices are too few, and the factor allows no more.
    for ((gain, status) <- Seq("3" -> ExplainedSkew.Whole, "1.5" -> ExplainedSkew.Split)) {
      withSQLConf(SkewConf.SKEW_MIN_GAIN.key -> gain, factor -> "2.5") {
        val few = joined
        few.collect()
        val skew = one(few).skew.head
        assert(
          skew.status === status && skew.description.contains(SkewReason.TooMuchReread.text),
          skew)
        assert(skew.advice === Some(SkewReason.TooMuchReread.advice))
        val plan = few.queryExecution.executedPlan.toString
        if (status == ExplainedSkew.Split) {
          assert(skew.description.contains("; not shorter: "))
          assert(plan.contains(s", not shorter: ${SkewReason.TooMuchReread.text}"), plan)
        }
        val Needed(value) = skew.description
        withSQLConf(factor -> value) {
          val more = joined
          checkSplit(more)
          assert(!one(more).skew.head.description.contains(SkewReason.TooMuchReread.text))
          if (status == ExplainedSkew.Split) assert(longest(more) * 1.25 <= longest(few))
        }
      }
    }
  }

  test("not looked at: switched off, not adaptive") {
    def why(df: DataFrame) = one(df).skew.map(s => s.status -> s.text)
    withSQLConf("spark.sql.adaptive.enabled" -> "false") {
      val df = three
      df.collect()
      assert(why(df) === Seq(ExplainedSkew.Ignored -> "the plan is not adaptive"))
      assert(one(df).execution.get.nullKeys.endsWith("(the plan is not adaptive)"))
      assert(one(df).execution.get.exchanges === 3)
    }
    withSQLConf(SkewConf.EXCLUDED_RULES.key -> SpreadNullKeys.ruleName) {
      val df = three
      df.collect()
      assert(
        one(df).execution.get.nullKeys
          .endsWith("(the rule SpreadNullKeys is excluded by a setting)"))
    }
    withSQLConf(SkewConf.SKEW_ENABLED.key -> "false") {
      assert(why(three) === Seq(ExplainedSkew.Ignored -> s"${SkewConf.SKEW_ENABLED.key} is false"))
    }
    withSQLConf(Off) {
      val explanation = explain(again(three))
      assert(
        explanation.notes === Seq(
          s"${SkewConf.ENABLED.key} is false, so Spark plans all joins alone."))
      val join = explanation.joins.head
      assert(join.origin.status === Origin.SwitchedOff)
      assert(join.origin.detail === Some("[k] full outer, 3 inputs"))
      assert(join.operators === Seq("SortMergeJoin", "SortMergeJoin"))
    }
  }
}
