package io.github.skewext.asof

import io.github.skewext.StoredTables
import io.github.skewext.platform.SkewConf

import org.apache.spark.SparkConf
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.expressions.{BloomFilterMightContain, DynamicPruningExpression, Expression, Literal}
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit
import org.apache.spark.sql.execution.{FileSourceScanExec, FilterExec}
import org.apache.spark.sql.internal.SQLConf

/** Versions that are filtered at run time by the keys of the spine. */
class AsOfRuntimeFiltersSuite extends AsOfTest with StoredTables {

  override protected def generatesCode: Boolean = false

  override protected def sparkConf: SparkConf = super.sparkConf
    .set(SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key, "-1")
    .set(SQLConf.RUNTIME_BLOOM_FILTER_APPLICATION_SIDE_SCAN_SIZE_THRESHOLD.key, "4000")

  private def spine: DataFrame = stored(
    "spine",
    spark.range(0, 40, 1, 1).selectExpr("id AS k", "id % 8 AS n", "'name ' || id AS s", "100 AS t"))

  private def versions(name: String, key: String): DataFrame = stored(
    name,
    spark
      .range(0, 600, 1, 1)
      .selectExpr(s"$key AS k", s"id AS ${name}_t", s"sha(string(id)) AS $name"))

  private def a: DataFrame = versions("a", "if(id > 590, null, id % 300)")
  private def b: DataFrame = versions("b", "id % 350")

  private def joined(spine: DataFrame, how: String = "left")(versions: DataFrame*): DataFrame =
    asOf(spine, "t", how)(versions.map(v => Versions(v, v.columns(1), "nearest")): _*)

  private def blooms(df: DataFrame): Seq[FilterExec] =
    collect(df.queryExecution.executedPlan) {
      case filter @ FilterExec(condition, _) if has[BloomFilterMightContain](condition) => filter
    }

  private def has[T](condition: Expression)(implicit tag: reflect.ClassTag[T]): Boolean =
    condition.exists(tag.runtimeClass.isInstance)

  private def whenOff(df: DataFrame): Unit = {
    val rows = again(df).collect().toSeq
    withSQLConf(SkewConf.MULTI_JOIN_RUNTIME_FILTER.key -> "false") {
      val unfiltered = again(df)
      assertSameRows(rows, unfiltered.collect().toSeq, "the same without runtime filters")
      assert(blooms(unfiltered).isEmpty)
    }
  }

  test("versions of keys that a filtered spine lacks are not shuffled", Slow) {
    for (how <- Seq("left", "inner")) withAdaptive {
      val df = joined(spine.where("n = 3"), how)(a, b)
      whenOff(df)
      df.collect()
      val filters = blooms(df)
      assert(filters.size === 2, df.queryExecution.executedPlan)
      filters.foreach(f => assert(f.metrics("numOutputRows").value < 100))
    }
  }

  test("a limit that is pushed into the spine does not end the filters of versions") {
    val df = joined(spine.where("n = 3"))(a, b).limit(3)
    assert(df.queryExecution.optimizedPlan.exists {
      case join: MultiAsOfJoin => join.children.head.isInstanceOf[LocalLimit]
      case _ => false
    })
    assert(df.collect().length === 3)
    assert(blooms(df).size === 2, df.queryExecution.executedPlan)
  }

  test("a filtered table of versions filters the spine of an inner join only", Slow) {
    for ((how, expected) <- Seq("inner" -> 2, "left" -> 0)) withClue(how) {
      val large = versions("large", "id % 300").selectExpr("k", "large_t AS t", "large AS x")
      val df = joined(large, how)(a.where("a < '08'"), b)
      whenOff(df)
      df.collect()
      assert(blooms(df).size === expected, df.queryExecution.executedPlan)
    }
  }

  test("only partitions with keys of the spine are read") {
    val path = folder.resolve("days").toString
    spark.range(0, 200).selectExpr("id AS d_t", "id % 8 AS k").write.partitionBy("k").parquet(path)
    // The values of the folders' names are ints.
    val few = spine.where("n = 3 AND k < 8").selectExpr("int(k) AS k", "s", "t")
    withSQLConf(SQLConf.DYNAMIC_PARTITION_PRUNING_REUSE_BROADCAST_ONLY.key -> "false") {
      val df = joined(few)(spark.read.parquet(path).select("k", "d_t"))
      whenOff(df)
      df.collect()
      val read = collect(df.queryExecution.executedPlan) {
        case scan: FileSourceScanExec if scan.partitionFilters.exists {
              case DynamicPruningExpression(Literal.TrueLiteral) => false
              case filter => has[DynamicPruningExpression](filter)
            } =>
          scan.metrics("numPartitions").value
      }
      assert(read === Seq(1), df.queryExecution.executedPlan)
    }
  }

  test("no filters by a spine without one, by its keys alone, or by floating-point keys", Slow) {
    val double = versions("double", "if(id % 7 = 0, -0.0D, double(id))")
    for (df <- Seq(
        joined(spine)(a, b),
        joined(spine.where("k < 5"))(a, b),
        joined(spine.where("n = 3").selectExpr("double(k) AS k", "s", "t"))(double))) {
      whenOff(df)
      df.collect()
      assert(blooms(df).isEmpty, df.queryExecution.executedPlan)
    }
  }

  test("an empty spine reads no versions") {
    val df = asOf(spine.where("n = 3 AND s = ''"), "t")(Versions(a, "a_t", "backward"))
    whenOff(df)
    assert(df.collect().isEmpty)
  }
}
