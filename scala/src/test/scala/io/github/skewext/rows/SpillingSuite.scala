package io.github.skewext.rows

import io.github.skewext.MultiJoinTest
import io.github.skewext.platform.SkewConf

import org.apache.spark.SparkConf
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.functions._

/**
 * The ways in which a task brings rows together: hashed, sorted, hashed until there are too many,
 * merged as they come; with collisions of hashes, with spilling, with groups larger than the heap
 * is to hold. All give the same rows.
 */
class SpillingSuite extends MultiJoinTest {

  override protected def afterEach(): Unit = {
    spark.catalog.clearCache()
    super.afterEach()
  }

  // Sorters spill after so many rows, whatever the memory.
  override protected def sparkConf: SparkConf =
    super.sparkConf.set("spark.shuffle.spill.numElementsForceSpillThreshold", "40")

  private val Grouping = SkewConf.MULTI_JOIN_GROUPING.key
  private val MaxRows = SkewConf.MULTI_JOIN_MAX_ROWS_IN_MEMORY.key
  private val GroupRows = SkewConf.MULTI_JOIN_GROUP_ROWS_IN_MEMORY.key
  private val HashBits = SkewConf.MULTI_JOIN_HASH_BITS.key

  // Each with many bits of a hash, few or none; `make test-all` has each of them with each.
  private val ways: Seq[Map[String, String]] = for {
    (bits, i) <- Seq("64", "2", "0").zipWithIndex
    (way, j) <- Seq(
      Map.empty[String, String],
      Map(Grouping -> "sort"),
      Map(MaxRows -> "0"),
      Map(MaxRows -> "17"),
      Map(Grouping -> "sort", GroupRows -> "1")).zipWithIndex
    if testAll || (i + j) % 3 == 0
  } yield way + (HashBits -> bits)

  /** `rows` rows with keys from 0 until `keys` in turn, every seventh key null. */
  private def input(i: Int, rows: Int, keys: Int): DataFrame =
    spark
      .range(0, rows, 1, 2)
      .select(
        when(col("id") % 7 =!= 3, col("id") % keys + i).cast("int").as("k"),
        concat(lit("a text that is not short "), col("id")).as(s"s$i"),
        col("id").as(s"v$i"))

  /** Each query in each way, or a sample that has each query and each way. */
  private def inAllWays(queries: DataFrame*): Unit =
    for ((df, way) <- covering(for (df <- queries; way <- ways) yield (df, way))) {
      withSQLConf(way.toSeq: _*) {
        val here = again(df)
        assertSameRows(here.collect().toSeq, rowsWhenOff(df), s"Spark's joins, with $way")
        assert(operators(here).size === 1)
      }
    }

  test("unique keys, with some in one input only", Slow) {
    inAllWays(fullJoin("k")(input(0, 60, 1000), input(20, 50, 1000), input(40, 90, 1000)))
  }

  test("keys with several rows in all inputs", Slow) {
    inAllWays(fullJoin("k")(input(0, 60, 9), input(3, 30, 5), input(5, 50, 11)))
  }

  test("one key with many rows in one input, in two, in all", Slow) {
    inAllWays(
      fullJoin("k")(input(0, 200, 1), input(0, 1, 1), input(0, 2, 1)),
      fullJoin("k")(input(0, 2, 1), input(0, 90, 1), input(0, 60, 1)),
      fullJoin("k")(input(0, 20, 1), input(0, 20, 1), input(0, 20, 1)))
  }

  test("sorted inputs, of whose keys few rows are kept in memory", Slow) {
    // Null keys are spread in adaptive plans, which needs a shuffle.
    withSQLConf(GroupRows -> "2", "spark.sql.adaptive.enabled" -> "false") {
      for (sizes <- Seq(
          Seq((0, 60, 1000), (20, 50, 1000), (40, 90, 1000)),
          Seq((0, 60, 9), (3, 30, 5), (5, 50, 11)),
          Seq((0, 200, 1), (0, 3, 1), (0, 2, 1)),
          Seq((0, 20, 1), (0, 20, 1), (0, 20, 1)))) {
        val inputs = sizes.map { case (i, rows, keys) => sortedBy(input(i, rows, keys), "k") }
        val joined = fullJoin("k")(inputs: _*)
        assertSameRows(joined.collect().toSeq, rowsWhenOff(joined), s"Spark's joins, $sizes")
        assert(operator(joined).comesOrdered)
      }
    }
  }

  test("roles skip groups, whatever is left of them", Slow) {
    inAllWays(
      Seq(
        Seq("required", "optional", "excluded"),
        Seq("excluded", "optional", "required"),
        Seq("required", "required", "required"),
        Seq("optional", "excluded", "optional")).map { roles =>
        multiJoin(Seq(input(0, 60, 9), input(3, 30, 5), input(5, 50, 11)), Seq("k"), roles = roles)
      }: _*)
  }

  test("a task that switches to sorting spills and reports the amount") {
    withSQLConf(MaxRows -> "10", "spark.sql.shuffle.partitions" -> "1") {
      val df = fullJoin("k")(input(0, 500, 50), input(3, 300, 50))
      checkJoin(df)
      val metrics = operator(df).metrics
      assert(metrics("spillSize").value > 0)
      assert(metrics("peakMemory").value > 0)
      assert(metrics("numRowsOfInput0").value === 500)
      assert(metrics("numRowsOfInput1").value === 300)
    }
  }

  test("rows that fit in memory are not spilled") {
    val df = fullJoin("k")(input(0, 500, 50), input(3, 300, 50))
    checkJoin(df)
    val metrics = operator(df).metrics
    assert(metrics("spillSize").value === 0)
    assert(metrics("peakMemory").value > 0)
    assert(metrics("numOutputRows").value === df.count())
  }

  test("a task that ends before its rows are read frees its memory", Slow) {
    // A leak makes the task fail in tests (spark.unsafe.exceptionOnMemoryLeak).
    assert(spark.sparkContext.getConf.get("spark.unsafe.exceptionOnMemoryLeak") === "true")
    ways.foreach { way =>
      withSQLConf(way.toSeq: _*) {
        val df = fullJoin("k")(input(0, 300, 3), input(0, 90, 3), input(1, 50, 3))
        assert(df.limit(3).collect().length === 3)
        assert(df.rdd.mapPartitions(_.take(1)).count() > 0)
      }
    }
  }

  test("rows of more than a chunk and of more than a page", Slow) {
    def wide(i: Int, length: Int) =
      spark
        .range(0, 6, 1, 1)
        .select(col("id").as("k"), repeat(col("id").cast("string"), length).as(s"s$i"))
    ways.filter(_(HashBits) != "0").foreach { way =>
      withSQLConf(way.toSeq: _*) {
        val df = fullJoin("k")(wide(0, 100 * 1000), wide(1, 5 * 1000 * 1000), wide(2, 10))
          .selectExpr("k", "length(s0) AS l0", "length(s1) AS l1", "length(s2) AS l2")
        checkAnswer(
          df,
          spark.range(6).selectExpr("id", "100000 AS l0", "5000000 AS l1", "10 AS l2"))
      }
    }
  }
}
