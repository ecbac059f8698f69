package io.github.skewext.skew

import io.github.skewext.skew.plan.SkewReason
import io.github.skewext.skew.split.{JoinedInputs, SplitSkewedJoins}
import io.github.skewext.{Joins, Technique}

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.functions._

/** Chains of Spark's joins on one key in one stage, which [[SplitSkewedJoins]] splits as a whole. */
class ChainsWithoutSkewSuite extends SkewTest {

  /** A rule that splits nothing and counts the joins that it describes. */
  private class Describing extends SplitSkewedJoins {
    var described = 0

    override protected def describe(join: SparkPlan): Either[SkewReason, JoinedInputs] = {
      described += 1
      super.describe(join)
    }

    override protected def replaced(
        whole: SparkPlan,
        join: SparkPlan,
        splits: Seq[SparkPlan]): Either[SkewReason, SparkPlan] = Left(SkewReason.LittleGain)
  }

  private def described(df: DataFrame): Int = {
    val rule = new Describing
    rule(stripAQEPlan(df.queryExecution.executedPlan))
    rule.described
  }

  private def table(i: Int, rows: Int = 40, hot: Int = 0): DataFrame =
    skewed(i, rows, hot, maps = 2).withColumnRenamed("k", s"k$i")

  private def join(l: DataFrame, i: Int, right: DataFrame, how: String = "left"): DataFrame =
    l.join(right.hint("merge"), col("k0") === col(s"k$i"), how)

  test("a chain without skew is described once, and each of its joins has the reason") {
    val n = 30
    // Generated code hides the chain in the executed plan.
    withSQLConf("spark.sql.codegen.wholeStage" -> "false") {
      val one = skewed(0, 20, maps = 2)
      val df = (1 to n).foldLeft(one.select(col("k").as("k0"))) { (l, i) =>
        join(l, i, one.select(col("k").as(s"k$i")).where("v0 % 4 = 0"))
      }
      df.collect()
      assert(reasons(df) === Seq.fill(n)(SkewReason.NotSkewed))
      assert(described(df) === 1)
    }
  }

  test("joins below an input of the chain, and those of a skewed chain, are described again") {
    withSQLConf("spark.sql.codegen.wholeStage" -> "false") {
      // An outer join of optional rows is an input of its own.
      val below = table(2).join(table(3).hint("merge"), col("k2") === col("k3"), "full")
      val df = join(join(table(0), 1, table(1)), 2, below)
      checkWhole(df)
      assert(reasons(df) === Seq.fill(3)(SkewReason.NotSkewed))
      assert(described(df) === 2)
      withSQLConf("spark.skewext.skew.minGain" -> "1000") {
        val skewed = join(join(table(0), 1, table(1, 800, 2)), 2, table(2))
        checkWhole(skewed)
        assert(reasons(skewed).contains(SkewReason.LittleGain))
        assert(described(skewed) === 2)
      }
    }
  }

  test("a join of the chain whose hint lowers the threshold is split") {
    withSQLConf(Threshold -> "1000000") {
      val lower = Joins.skewJoin(
        table(0).withColumnRenamed("k0", "k"),
        table(1, 800, 2).withColumnRenamed("k1", "k"),
        Left(Seq("k")),
        "left",
        Technique("adaptive", Map("threshold" -> "2500", "slice_bytes" -> "2000")))
      val df = join(lower.withColumnRenamed("k", "k0"), 2, table(2))
      val split = checkSplit(df)
      assert(split.children.size === 2)
      assert(reasons(df) === Seq(SkewReason.NotSkewed))
    }
  }
}
