package io.github.skewext.nullkeys

import java.util.concurrent.atomic.AtomicInteger

import io.github.skewext.MultiJoinTest
import io.github.skewext.nullkeys.NullKeyRetriesSuite._
import io.github.skewext.skew.SplitRetriesSuite.{Watched, watched}

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateUnsafeProjection
import org.apache.spark.sql.catalyst.expressions.{AttributeSet, Literal}
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike
import org.apache.spark.sql.expressions.UserDefinedFunction
import org.apache.spark.sql.functions._
import org.apache.spark.sql.skewext.{RetriedTasks, TestShuffles}
import org.apache.spark.sql.types.LongType

/** Rows with a null key go to the same partition when their map task is retried. */
class NullKeyRetriesSuite extends MultiJoinTest with RetriedTasks {

  override protected val shufflePartitions = 8

  private def input(i: Int, maps: Int = 4): DataFrame = spark
    .range(0, 400, 1, maps)
    .select(when(col("id") % 4 === 0, col("id") * (i + 1)).as("k"), col("id").as(s"v$i"))

  /** For each input, the columns by which rows with a null key are spread. */
  private def spreadBy(df: DataFrame): Seq[Set[String]] = {
    df.collect()
    for {
      exchange <- collect(df.queryExecution.executedPlan) { case e: ShuffleExchangeLike => e }
      HashPartitioning(_ :+ (spread: SpreadNulls), _) <- Seq(exchange.outputPartitioning)
    } yield AttributeSet(spread.values).map(_.name).toSet
  }

  test("spreads null keys by the task number, also in generated code") {
    val keyless = SpreadNulls(Seq(Literal(null, LongType)), Nil)
    val places = spark.range(0, 4, 1, 4).rdd.map { _ =>
      val generated = GenerateUnsafeProjection.generate(Seq(keyless))
      (keyless.eval(InternalRow.empty), generated(InternalRow.empty).getLong(0))
    }
    val found = places.collect()
    assert(found.forall { case (one, other) => one == other })
    assert(found.toSet.size === 4)
  }

  test("spreads null keys by columns if these are stable, otherwise only by task") {
    val unstable = Seq(
      input(1).withColumn("v1", rand()),
      input(1).withColumn("v1", monotonically_increasing_id()).repartition(4),
      input(1).sample(0.9, 1),
      spark.createDataFrame(input(1).rdd, input(1).schema))
    for (other <- unstable) {
      assert(spreadBy(fullJoin("k")(input(0), other)) === Seq(Set("k", "v0"), Set.empty))
    }
    val withDouble = input(1).withColumn("d", col("v1") / 7.0d)
    assert(spreadBy(fullJoin("k")(input(0), withDouble)) === Seq(Set("k", "v0"), Set("k", "v1")))
  }

  test("retried map tasks with other values neither lose nor duplicate rows") {
    val renewed = input(0).repartition(6).withColumn("v0", changing(col("v0")))
    val df = fullJoin("k")(renewed, input(1), input(2)).withColumn("w", watched(col("v1"), lit(1L)))
    withSQLConf(
      TestShuffles.OtherRowsAreNotSeen,
      "spark.sql.adaptive.coalescePartitions.enabled" -> "false") {
      var lost = false
      Watched.once = Some { () =>
        generation.incrementAndGet()
        val shuffles = collect(df.queryExecution.executedPlan) {
          case s: ShuffleQueryStageExec if s.shuffle.numMappers == 6 => s.mapStats.get.shuffleId
        }
        // The running tasks of the join read the old output, and later ones the new output.
        shuffles.foreach(TestShuffles.loseLast)
        lost = shuffles.nonEmpty
      }
      try {
        val rows = df.collect()
        assert(lost && operators(df).exists(_.spreadNullKeys))
        val keys = (0 to 2).flatMap(i => (0 until 400 by 4).map(_ * (i + 1))).distinct
        assert(rows.count(_.isNullAt(0)) === 3 * 300)
        assert(rows.length === 3 * 300 + keys.size)
      } finally {
        Watched.reset()
      }
    }
  }
}

object NullKeyRetriesSuite {

  private val generation = new AtomicInteger

  /** Returns other values after each increment of `generation`. */
  private val changing: UserDefinedFunction =
    udf((v: Long) => v * 31 + generation.get * 1000003L).asNondeterministic()
}
