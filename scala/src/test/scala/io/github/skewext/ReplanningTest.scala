package io.github.skewext

import io.github.skewext.asof.AsOfTest
import io.github.skewext.asof.exec.{AsOfJoinExec, BroadcastAsOfJoinExec}
import io.github.skewext.join.MultiFullJoinStrategy
import io.github.skewext.join.exec.MultiFullJoinExec
import io.github.skewext.join.range.{BroadcastRangeJoinExec, BroadcastRowsExec}
import io.github.skewext.latest.LatestRowsExec
import io.github.skewext.platform.SkewConf
import io.github.skewext.shuffle.{ColumnShuffleOfBatchesExec, ColumnShuffleOfRowsExec, ColumnarFilterProjectExec}
import io.github.skewext.skew.run.{KeySketchExec, SplitJoinExec}
import io.github.skewext.technique.{MarkedBroadcastJoinExec, SaltKeysExec, TechniqueTest}

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, SortMergeJoinExec}
import org.apache.spark.sql.execution.{SparkPlan, WholeStageCodegenExec}
import org.apache.spark.sql.expressions.Window
import org.apache.spark.sql.functions._

/** Queries whose plans change while they run, with a node of ours in them. */
trait ReplanningTest extends TechniqueTest with AsOfTest with StoredTables {

  /**
   * Columns k, v0, s0 for i = 0; the first input has a hot key. A cached table of numbers returns batches.
   */
  protected def stored(i: Int): DataFrame = stored(
    s"t$i", {
      val rows = if (i == 0) skewed(0, 1600, hot = 2) else skewed(i, 90)
      rows.withColumn(s"s$i", (hash(col(s"s$i")) % 10).cast("smallint"))
    })

  protected def small: DataFrame =
    stored("small", spark.range(6).selectExpr("id k", "id + 100 small"))

  /** No rows, which only running the query shows. */
  private def nothing: DataFrame = small.where("small < 50").select("k")

  /**
   * An operation for which adaptive execution plans the query again.
   *
   * @param inputs changes an input (k, v, s) of a join, and keeps k
   * @param results changes the result (k, ...) of a join
   * @param caches whether what it is applied to is cached first
   */
  protected case class Change(
      name: String,
      inputs: DataFrame => DataFrame,
      results: DataFrame => DataFrame,
      caches: Boolean = false) {

    def input(df: DataFrame, plain: Boolean): DataFrame =
      inputs(if (caches && !plain) df.cache() else df)

    def result(df: DataFrame, plain: Boolean): DataFrame =
      results(if (caches && !plain) df.cache() else df)
  }

  protected object Changes {
    private def both(name: String, change: DataFrame => DataFrame) = Change(name, change, change)

    val all: Seq[Change] = Seq(
      Change(
        "cache, filter and projection",
        df =>
          df.where(s"${df.columns(1)} % 3 > 0 AND ${df.columns(2)} > 3").select("k", df.columns(2)),
        df => df.where(s"${df.columns(2)} > 3").select("k", df.columns(2)),
        caches = true),
      Change(
        "cache, rename and condition on the key",
        df => df.withColumnRenamed(df.columns(1), "renamed").where("k % 5 <> 2"),
        _.where("k % 5 <> 2"),
        caches = true),
      both("broadcast", _.join(broadcast(small), Seq("k"), "left")),
      Change(
        "shuffle",
        df => df.groupBy("k").agg(max(df.columns(1)).as(df.columns(1)), count("*").as("n")),
        _.groupBy("k").count()),
      both("repartition", _.repartition(4, col("k"))),
      both("empty", _.join(nothing, Seq("k"))),
      both("empty anti join", _.join(nothing, Seq("k"), "left_anti")),
      both("changed join strategy", _.join(small, Seq("k"))))
  }

  /**
   * A query with a node of ours.
   *
   * @param isThere whether a plan has the node
   * @param of the query, of three inputs with columns k, v and s each
   */
  protected case class Case(
      name: String,
      isThere: SparkPlan => Boolean,
      of: Seq[DataFrame] => DataFrame,
      settings: Seq[(String, String)] = Nil)

  private val NotSplit = SkewConf.SKEW_ENABLED.key -> "false"

  private def sparkChain(inputs: Seq[DataFrame]): DataFrame =
    inputs.reduceLeft(_.join(_, Seq("k"), "full"))

  private def asOfJoin(inputs: Seq[DataFrame]): DataFrame = {
    val Seq(spineTime, times @ _*) = inputs.map(_.columns(1))
    asOf(inputs.head, spineTime, suffixes = Seq("0", "1", "2"))(
      Versions(inputs(1), times(0)),
      Versions(inputs(2), times(1), "forward"))
  }

  /** @param where selects rows of the broadcast side (lo, hi, s). */
  private def rangeJoin(name: String, isThere: SparkPlan => Boolean, where: String) = Case(
    name,
    isThere,
    inputs => {
      val Seq(a, b, c) = inputs
      val lo = b.toDF("lo", "hi", "s").where(where)
      a.where(a(a.columns(1)) >= 0)
        .join(broadcast(lo), a(a.columns(1)).between(lo("lo"), lo("lo") + 2), "left")
        .join(c, Seq("k"), "left")
    },
    GeneratedCode)

  private def roles(names: String*)(inputs: Seq[DataFrame]): DataFrame =
    multiJoin(inputs, Seq("k"), roles = names)

  private def technique(name: String, how: String, options: (String, String)*)(
      inputs: Seq[DataFrame]): DataFrame =
    inputs.reduceLeft(skewJoin(_, _, "k", how, name, options.toMap))

  protected val cases: Seq[Case] = Seq(
    Case(
      "multi-way join of columns",
      _.isInstanceOf[ColumnShuffleOfBatchesExec],
      fullJoin("k")(_: _*),
      Seq(NotSplit)),
    Case(
      "filters and projections of batches",
      _.isInstanceOf[ColumnarFilterProjectExec],
      inputs =>
        fullJoin("k")(inputs.map(df => df.where(s"${df.columns(1)} > 5").drop(df.columns(1))): _*)),
    Case(
      "multi-way join of rows",
      _.isInstanceOf[ColumnShuffleOfRowsExec],
      inputs =>
        fullJoin("k")(inputs.map(df => df.withColumn(df.columns(1), col(df.columns(1)) + 1)): _*),
      Seq(NotSplit)),
    Case(
      "roles",
      _.isInstanceOf[MultiFullJoinExec],
      roles("required", "optional", "excluded"),
      Seq(NotSplit)),
    rangeJoin("range join", _.isInstanceOf[BroadcastRangeJoinExec], "s > -9"),
    rangeJoin("range join with few rows", _.isInstanceOf[BroadcastRowsExec], "lo % 11 = 3"),
    Case(
      "chain that is rewritten",
      _.isInstanceOf[MultiFullJoinExec],
      sparkChain,
      Seq(NotSplit, SkewConf.MULTI_JOIN_REWRITE.key -> "true")),
    Case("split of a multi-way join", _.isInstanceOf[SplitJoinExec], fullJoin("k")(_: _*)),
    Case(
      "sampled keys of Spark's joins",
      _.isInstanceOf[KeySketchExec],
      sparkChain,
      Seq(SkewConf.SKEW_OUTPUT_MODE.key -> SkewConf.OutputSkew.All)),
    Case("split of Spark's joins", _.isInstanceOf[SplitJoinExec], sparkChain),
    Case("as-of join", _.isInstanceOf[AsOfJoinExec], asOfJoin, Seq(NotSplit)),
    Case(
      "as-of join with broadcast versions",
      _.isInstanceOf[BroadcastAsOfJoinExec],
      inputs => asOfJoin(inputs.head +: inputs.tail.map(broadcast(_)))),
    Case(
      "split of an as-of join",
      {
        case join: AsOfJoinExec => join.split.isDefined
        case _ => false
      },
      asOfJoin),
    Case(
      "latest rows",
      _.isInstanceOf[LatestRowsExec],
      inputs => latest(inputs.head, "k")(col(inputs.head.columns(1)))()),
    Case(
      "broadcast of small inputs",
      _.isInstanceOf[BroadcastHashJoinExec],
      roles("required", "optional", "excluded"),
      Seq(
        SkewConf.MULTI_JOIN_BROADCAST.key -> "true",
        "spark.sql.autoBroadcastJoinThreshold" -> "10MB")),
    Case(
      "Spark's joins in place of the operator",
      _.isInstanceOf[SortMergeJoinExec],
      roles("required", "optional", "optional"),
      Seq(NotSplit, SkewConf.EXCLUDED_RULES.key -> MultiFullJoinStrategy.ruleName)),
    Case(
      "row numbers",
      _.isInstanceOf[LatestRowsExec],
      inputs => {
        val byKey = Window.partitionBy("k")
        def first(df: DataFrame) = df
          .withColumn("n", row_number().over(byKey.orderBy(df.columns.tail.map(col): _*)))
          .where("n = 1")
          .drop("n")
        // The second one is above a join by its key.
        first(first(inputs.head).join(inputs(1), Seq("k"), "left"))
      },
      Seq(SkewConf.LATEST_REWRITE.key -> "true")),
    Case("salted join", _.isInstanceOf[SaltKeysExec], technique("salted", "left", "salts" -> "3")),
    Case(
      "broadcast side with unmatched rows",
      _.isInstanceOf[MarkedBroadcastJoinExec],
      inputs => technique("broadcast_map", "full")(inputs.take(2))),
    Case(
      "broadcast in chunks",
      _.isInstanceOf[BroadcastHashJoinExec],
      technique("iterative_broadcast", "left", "chunks" -> "2")))

  /** A settings' value for the time of a query: adaptive execution may broadcast only `small`. */
  protected val Adaptive: Seq[(String, String)] = Seq(
    "spark.sql.adaptive.enabled" -> "true",
    "spark.sql.autoBroadcastJoinThreshold" -> "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold" -> "300")

  /** All nodes that ran, those of stages among them. */
  protected def nodes(plan: SparkPlan): Seq[SparkPlan] = {
    val below = plan match {
      case adaptive: AdaptiveSparkPlanExec => Seq(adaptive.executedPlan)
      case stage: QueryStageExec => Seq(stage.plan)
      case code: WholeStageCodegenExec => Seq(code.child)
      case node => node.children
    }
    plan +: (below ++ plan.subqueries).flatMap(nodes)
  }
}
