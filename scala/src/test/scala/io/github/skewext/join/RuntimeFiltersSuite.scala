package io.github.skewext.join

import io.github.skewext.MultiJoinTest
import io.github.skewext.platform.SkewConf

import java.io.File
import java.nio.file.Files


import org.apache.spark.SparkConf
import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.catalyst.expressions.{BloomFilterMightContain, DynamicPruning, DynamicPruningExpression, Expression, Literal}
import org.apache.spark.sql.execution.{FileSourceScanExec, FilterExec, SubqueryBroadcastExec}
import org.apache.spark.sql.functions.{max, udf}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.{DataFrame, Row}

/** Runtime filters on large inputs, by the keys of a small one. */
class RuntimeFiltersSuite extends MultiJoinTest {

  private var folder: File = _

  override protected def sparkConf: SparkConf = super.sparkConf
    .set(SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key, "-1")
    // Compilation would take longer than these queries.
    .set(SQLConf.WHOLESTAGE_CODEGEN_ENABLED.key, "false")
    .set(SQLConf.CODEGEN_FACTORY_MODE.key, "NO_CODEGEN")
    .set(SQLConf.RUNTIME_BLOOM_FILTER_APPLICATION_SIDE_SCAN_SIZE_THRESHOLD.key, "4000")

  /**
   * `small` has the keys 0 to 39. `a` and `b` have more keys, some of them twice, and nulls. Equal
   * keys of `f` may differ. `days` is partitioned by the key, which has 8 values.
   */
  override protected def beforeAll(): Unit = {
    super.beforeAll()
    folder = Files.createTempDirectory("runtime-filters").toFile
    write("small", 40, "id AS k", "id % 8 AS n", "'name ' || id AS name")
    write("a", 400, "if(id > 390, null, id % 300) AS k", "sha(string(id)) AS va")
    write("b", 400, "if(id > 395, null, id % 350) AS k", "sha(string(id)) AS vb")
    write("f", 400, "if(id % 7 = 0, -0.0D, double(id)) AS k", "sha(string(id)) AS vf")
    spark
      .range(0, 200, 1, 1)
      .selectExpr("sha(string(id)) AS vd", "id % 8 AS k")
      .write
      .partitionBy("k")
      .parquet(s"$folder/days")
  }

  override protected def afterAll(): Unit =
    try JavaUtils.deleteRecursively(folder)
    finally super.afterAll()

  private def write(name: String, rows: Long, columns: String*): Unit =
    spark.range(0, rows, 1, 1).selectExpr(columns: _*).write.parquet(s"$folder/$name")

  private def read(name: String): DataFrame = spark.read.parquet(s"$folder/$name")

  /** The keys 3, 11, 19, 27 and 35. */
  private def few: DataFrame = read("small").where("n = 3")

  private def join(roles: String*)(inputs: DataFrame*): DataFrame =
    multiJoin(inputs, Seq("k"), roles = roles)

  private def asked(df: DataFrame): Seq[FilterExec] =
    collect(df.queryExecution.executedPlan) {
      case filter @ FilterExec(condition, _) if hasBloom(condition) => filter
    }

  private def hasBloom(condition: Expression): Boolean =
    condition.exists(_.isInstanceOf[BloomFilterMightContain])

  private def bothWays(test: => Unit): Unit = Seq("true", "false").foreach { adaptive =>
    withSQLConf(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> adaptive)(test)
  }

  import testImplicits._

  test("filters large inputs of all roles by the keys of a small one", Slow) {
    val ways =
      for (adaptive <- Seq("true", "false"); role <- Seq("required", "optional", "excluded"))
        yield (adaptive, role)
    for ((adaptive, role) <- covering(ways)) {
      withSQLConf(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> adaptive) {
        val joined = join("required", "optional", role)(few, read("a"), read("b"))
        checkJoin(joined)
        val filters = asked(joined)
        assert(filters.size === 2, joined.queryExecution.executedPlan)
        // Only rows of the 5 keys are shuffled, and false positives of the filter.
        filters.foreach(f => assert(f.metrics("numOutputRows").value < 100))
        // Both inputs use one filter.
        val blooms = filters.map(_.condition.collectFirst { case b: BloomFilterMightContain => b })
        assert(blooms.flatten.map(_.bloomFilterExpression.canonicalized).distinct.size === 1)
      }
    }
  }

  test("filters inputs that have other filters or computed keys") {
    val left = read("a").where("va > '2'").selectExpr("cast(k AS int) AS k", "va")
    val right = read("b").selectExpr("k + 1 AS k", "vb")
    val joined =
      join("required", "required", "optional")(few.selectExpr("int(k) AS k"), left, right)
    checkJoin(joined)
    assert(asked(joined).size === 2)
  }

  test("keeps the filters when adaptive execution plans again") {
    // The counted input and the join above add shuffles, so that the query is planned again.
    val counted = read("b").groupBy("k").count()
    val joined = join("required", "required", "optional")(few, read("a"), counted)
    val above = joined.groupBy("va").count().join(read("b"), $"va" === $"vb")
    assertSameRows(above.collect().toSeq, rowsWhenOff(above), "the same query with skewext off")
    assert(asked(above).size === 1)
    assert(operators(above).size === 1)
  }

  test("returns no rows if the small input is empty", Slow) {
    bothWays {
      val joined = join("required", "required")(few.where("name = 'nobody'"), read("a"))
      assert(joined.collect().isEmpty)
      assert(rowsWhenOff(joined).isEmpty)
    }
  }

  test("adds a filter for each of two keys", Slow) {
    val small = few.selectExpr("k", "k AS l", "name")
    val joined = multiJoin(
      Seq(small, read("a").selectExpr("k", "k AS l", "va")),
      Seq("k", "l"),
      roles = Seq("required", "required"))
    checkJoin(joined)
    assert(
      asked(joined)
        .flatMap(_.condition.collect { case b: BloomFilterMightContain => b })
        .size === 2)
    withSQLConf(SQLConf.RUNTIME_FILTER_NUMBER_THRESHOLD.key -> "1") {
      val once = again(joined)
      checkJoin(once)
      assert(
        asked(once)
          .flatMap(_.condition.collect { case b: BloomFilterMightContain => b })
          .size === 1)
    }
  }

  test("adds no filter that is wrong, expensive, useless or disabled", Slow) {
    def none(joined: DataFrame): Seq[Row] = {
      val rows = checkJoin(joined)
      assert(asked(joined).isEmpty, joined.queryExecution.executedPlan)
      rows
    }
    val (a, b) = (read("a"), read("b"))
    // The join also returns keys that the small input lacks.
    none(join("optional", "required", "optional")(few, a, b))
    none(join("excluded", "required", "optional")(few, a, b))
    // The small input has no filter, or one on keys, which all inputs have.
    none(join("required", "required", "optional")(read("small"), a, b))
    none(join("required", "required", "optional")(read("small").where("k < 9"), a, b))
    // -0.0 equals 0.0, so equal keys may differ.
    none(join("required", "optional")(few.selectExpr("double(k) AS k"), read("f")))
    // The rows of an aggregate have already been shuffled.
    none(join("required", "optional")(few, a.groupBy("k").count()))
    // The aggregate would be computed twice.
    val greatest = few.groupBy("k").agg(max("n").as("n"))
    none(join("required", "optional")(greatest.where("n < 5"), a))
    // A function of unknown cost would be called twice.
    val isThree = udf((n: Long) => n == 3)
    none(join("required", "optional")(few.where(isThree($"n")), a))
    def filtered = join("required", "required", "optional")(few, a, b)
    var expected: Seq[Row] = Nil
    withSQLConf(SkewConf.MULTI_JOIN_RUNTIME_FILTER.key -> "false") {
      expected = none(filtered)
    }
    Seq(
      SQLConf.RUNTIME_BLOOM_FILTER_ENABLED.key -> "false",
      SQLConf.RUNTIME_BLOOM_FILTER_CREATION_SIDE_THRESHOLD.key -> "10",
      SQLConf.RUNTIME_BLOOM_FILTER_APPLICATION_SIDE_SCAN_SIZE_THRESHOLD.key -> "10GB").foreach {
      setting =>
        withSQLConf(setting) {
          val joined = filtered
          assertSameRows(joined.collect().toSeq, expected, "the same query with skewext off")
          assert(operators(joined).size === 1 && asked(joined).isEmpty)
        }
    }
  }

  /** The scan of the partitioned table. */
  private def scan(df: DataFrame): FileSourceScanExec =
    collect(df.queryExecution.executedPlan) {
      case scan: FileSourceScanExec if scan.relation.partitionSchema.nonEmpty => scan
    }.head

  private def isPruned(scan: FileSourceScanExec): Boolean = scan.partitionFilters.exists {
    case DynamicPruningExpression(Literal(_, _)) => false
    case _: DynamicPruning => true
    case _ => false
  }

  /** A row whose key is in one of the eight partitions. */
  private def day: DataFrame = read("small").where("name = 'name 5'")

  test("reads only partitions with keys of a small input", Slow) {
    bothWays {
      withSQLConf(SQLConf.DYNAMIC_PARTITION_PRUNING_REUSE_BROADCAST_ONLY.key -> "false") {
        val joined = join("required", "optional", "optional")(day, read("days"), read("a"))
        checkJoin(joined)
        assert(isPruned(scan(joined)), joined.queryExecution.executedPlan)
        assert(scan(joined).metrics("numPartitions").value === 1)
        // The other input still has a bloom filter.
        assert(asked(joined).size === 1)
      }
    }
  }

  test("prunes partitions by the keys of a broadcast input") {
    bothWays {
      withSQLConf(
        SkewConf.MULTI_JOIN_BROADCAST.key -> "true",
        SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key -> "4000") {
        val joined = join("required", "required")(read("days"), day)
        val rows = joined.collect().toSeq
        assertSameRows(rows, rowsWhenOff(joined), "the same query with skewext off")
        assert(rows.size === 25)
        assert(operators(joined).isEmpty)
        assert(isPruned(scan(joined)), joined.queryExecution.executedPlan)
        assert(scan(joined).metrics("numPartitions").value === 1)
        assert(collectWithSubqueries(joined.queryExecution.executedPlan) {
          case s: SubqueryBroadcastExec => s
        }.nonEmpty)
      }
    }
  }

  test("reads all partitions if pruning is wrong, expensive or disabled", Slow) {
    def whole(joined: DataFrame): Unit = {
      checkJoin(joined)
      assert(!isPruned(scan(joined)), joined.queryExecution.executedPlan)
      assert(scan(joined).metrics("numPartitions").value === 8)
    }
    // A bloom filter on a partition column is a filter of partitions.
    val asked = join("required", "optional")(day, read("days"))
    checkJoin(asked)
    assert(scan(asked).metrics("numPartitions").value === 1)
    withSQLConf(SQLConf.RUNTIME_BLOOM_FILTER_ENABLED.key -> "false") {
      // As in Spark's own joins, the default allows only the reuse of a broadcast.
      whole(join("required", "optional")(day, read("days")))
    }
    withSQLConf(
      SQLConf.RUNTIME_BLOOM_FILTER_ENABLED.key -> "false",
      SQLConf.DYNAMIC_PARTITION_PRUNING_REUSE_BROADCAST_ONLY.key -> "false") {
      whole(join("optional", "optional")(day, read("days")))
      whole(join("required", "optional")(read("small"), read("days")))
      withSQLConf(SQLConf.DYNAMIC_PARTITION_PRUNING_ENABLED.key -> "false") {
        whole(join("required", "optional")(day, read("days")))
      }
      // Another read of the small input would cost more than it saves.
      withSQLConf(SQLConf.DYNAMIC_PARTITION_PRUNING_FALLBACK_FILTER_RATIO.key -> "0.001") {
        whole(join("required", "optional")(day, read("days")))
      }
    }
  }
}
