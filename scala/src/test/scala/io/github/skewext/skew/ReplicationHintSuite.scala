package io.github.skewext.skew

import io.github.skewext.platform.SkewConf
import io.github.skewext.skew.plan.SkewReason
import io.github.skewext.technique.hint.{TechniqueHint, TechniqueOptions}
import io.github.skewext.technique.{TechniqueReason, TechniqueRequest}

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.expressions.IsNotNull
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.joins.ShuffledJoin
import org.apache.spark.sql.functions._
import org.apache.spark.sql.skewext.{SqlInternals, TestShims}

/** Joins of which one side must not be in several tasks: Spark gives MERGE such joins. */
class ReplicationHintSuite extends SkewTest {

  private def side(name: String, i: Int, hot: Int): DataFrame =
    skewed(i, if (hot > 0) 800 else 60, hot).withColumnRenamed("k", name)

  private val keep = Some(HintInfo(Some(NO_BROADCAST_AND_REPLICATION)))

  /** The uppermost join, hinted. */
  private def hinted(df: DataFrame, hint: JoinHint): DataFrame = {
    var done = false
    SqlInternals.dataFrame(
      spark,
      df.queryExecution.analyzed.transformDown {
        case join: Join if !done =>
          done = true
          join.copy(hint = hint)
      })
  }

  private def joined(how: String, hotLeft: Int, hotRight: Int): DataFrame =
    side("l", 0, hotLeft).join(side("r", 1, hotRight), col("l") === col("r"), how)

  private def splitBySpark(df: DataFrame): Boolean =
    collect(df.queryExecution.executedPlan) { case j: ShuffledJoin if j.isSkewJoin => j }.nonEmpty

  for (how <- Seq("inner", "left", "right", "full")) {
    test(s"the other side is not sliced, $how", Slow("full", "inner", "left")) {
      for ((l, r, hint) <- Seq((0, 2, JoinHint(keep, None)), (2, 0, JoinHint(None, keep)))) {
        val df = hinted(joined(how, l, r), hint)
        checkWhole(df)
        assert(!splitBySpark(df))
        assert(reasons(df) === Seq(SkewReason.MergeTarget))
        // The same join without the hint is split.
        val free = joined(how, l, r)
        free.collect()
        assert(splitBySpark(free) || splitJoins(free).nonEmpty)
      }
    }

    test(s"the side itself is sliced, $how", Slow("full")) {
      for ((l, r, hint) <- Seq((2, 0, JoinHint(keep, None)), (0, 2, JoinHint(None, keep)))) {
        val df = hinted(joined(how, l, r), hint)
        val rows = df.collect().toSeq
        assert(splitBySpark(df) || splitJoins(df).nonEmpty)
        assertSameRows(rows, rowsWhenOff(df), "the same query with skewext off")
      }
    }
  }

  test("neither side of a join may be in several tasks", Slow) {
    val df = hinted(joined("inner", 2, 2), JoinHint(keep, keep))
    checkWhole(df)
    assert(!splitBySpark(df) && reasons(df) === Seq(SkewReason.MergeTarget))
  }

  test("in a chain of joins on one key", Slow) {
    val c = side("c", 2, 0)
    def chain(hotLeft: Int, hotRight: Int) = hinted(
      side("l", 0, hotLeft)
        .join(side("r", 1, hotRight).join(c, col("r") === col("c")), expr("l = r")),
      JoinHint(keep, None))
    assert(checkSplit(chain(2, 0)).children.size === 3)
    val whole = chain(0, 2)
    checkWhole(whole)
    assert(reasons(whole).contains(SkewReason.MergeTarget))
    // Rows of the left side come of two inputs: a slice of one would have all of the other.
    val both = hinted(
      side("l", 0, 2).join(c, col("l") === col("c")).join(side("r", 1, 0), expr("l = r")),
      JoinHint(keep, None))
    checkWhole(both)
    assert(reasons(both).contains(SkewReason.MergeTarget))
  }

  test("no rows of a MERGE are replicated where the join does not say which side the target is") {
    def merge(df: DataFrame, checkCardinality: Boolean): DataFrame = {
      val child = df.queryExecution.analyzed
      val output = child.output.map(_.newInstance())
      SqlInternals.dataFrame(
        spark,
        MergeRows(
          isSourceRowPresent = IsNotNull(child.output.last),
          isTargetRowPresent = IsNotNull(child.output.head),
          matchedInstructions = Seq(TestShims.keep(child.output)),
          notMatchedInstructions = Nil,
          notMatchedBySourceInstructions = Nil,
          checkCardinality = checkCardinality,
          output = output,
          child))
    }
    // Numbers that rows get as they are read would be a reason of their own.
    val target = spark.range(0, 60, 1, 4).select(col("id").as("l"), col("id").as("__row_id"))
    // The hot key of the source matches nothing.
    val source = spark
      .range(0, 800, 1, 4)
      .select(
        when(col("id") % 20 === 0, col("id") / 20).otherwise(1000).cast("bigint").as("k"),
        md5(col("id").cast("string").cast("binary")).as("s"))
    val join = target.join(source, col("l") === col("k"), "full")
    val unchecked = merge(join, checkCardinality = false)
    unchecked.collect()
    assert(splitJoins(unchecked).nonEmpty, unchecked.queryExecution.executedPlan)
    val checked = merge(join, checkCardinality = true)
    assertSameRows(checked.collect().toSeq, unchecked.collect().toSeq, "the same rows, unchecked")
    assert(splitJoins(checked).isEmpty)
    assert(reasons(checked).contains(SkewReason.MergeTarget))
  }

  test("neither techniques nor the rewriting of chains take such a join") {
    val df = hinted(joined("full", 0, 0), JoinHint(keep, None))
    val join = df.queryExecution.analyzed.collectFirst { case join: Join => join }.get
    val salted = TechniqueHint.Wanted("salted", TechniqueOptions(Map.empty), prepared = false)
    val asked = TechniqueRequest.of(spark, join, salted)
    assert(asked.swap.toOption.get.reason === TechniqueReason.MergeTarget)
    withSQLConf(SkewConf.MULTI_JOIN_REWRITE.key -> "true") {
      def chain(df: DataFrame) =
        df.join(spark.range(5), coalesce(col("l"), col("r")) === col("id"), "full")
      assert(operators(again(chain(joined("full", 0, 0)))).nonEmpty)
      assert(operators(again(chain(df))).isEmpty)
    }
  }
}
