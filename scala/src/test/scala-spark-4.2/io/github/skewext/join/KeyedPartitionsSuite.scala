package io.github.skewext.join

import java.util.Collections

import org.apache.spark.SparkConf
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.connector.catalog.functions.UnboundBucketFunction
import org.apache.spark.sql.connector.catalog.{Column, Identifier, InMemoryCatalog}
import org.apache.spark.sql.connector.distributions.Distributions
import org.apache.spark.sql.connector.expressions.{Expressions, Transform}
import org.apache.spark.sql.functions.{col, count, max}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.LongType

/**
 * Joins of tables that are partitioned by the key in their storage, in Spark's catalog in memory.
 * From Spark 4.2 on, a scan has a partition for each file, and several may have one value.
 */
class KeyedPartitionsSuite extends StoragePartitionsTest {

  override protected def sparkConf: SparkConf =
    super.sparkConf.set("spark.sql.catalog.mem", classOf[InMemoryCatalog].getName)

  private lazy val catalog = {
    val found = spark.sessionState.catalogManager.catalog("mem").asInstanceOf[InMemoryCatalog]
    found.createFunction(Identifier.of(Array.empty, "bucket"), UnboundBucketFunction)
    found
  }

  /** A table of (k, v_<name>), every seventh row without a key, with files of two rows. */
  private def create(name: String, by: Transform, from: Int, until: Int): DataFrame = {
    val columns = Array(Column.create("k", LongType), Column.create(s"v_$name", LongType))
    catalog.createTable(
      Identifier.of(Array("ns"), name),
      columns,
      Array(by),
      Collections.emptyMap[String, String],
      Distributions.unspecified(),
      Array.empty,
      None,
      None,
      numRowsPerSplit = 2)
    // Spark's function in memory has no bucket for a null.
    val key = if (by.name == "bucket") "id" else "if(id % 7 = 3, null, id div 4)"
    spark
      .range(from, until)
      .selectExpr(s"$key AS k", s"id AS v_$name")
      .writeTo(s"mem.ns.$name")
      .append()
    spark.table(s"mem.ns.$name")
  }

  private def tables(of: String, by: Transform): Seq[DataFrame] =
    Seq(("a", 0, 40), ("b", 20, 60), ("c", 30, 70), ("d", 1, 9)).map { case (name, from, until) =>
      create(s"${of}_$name", by, from, until)
    }

  private lazy val byKey = tables("key", Expressions.identity("k"))
  private lazy val byBucket = tables("bucket", Expressions.bucket(4, "k"))

  private def checkAligned(df: DataFrame): Unit = {
    checkJoin(df)
    assert(exchanges(df).isEmpty, df.queryExecution.executedPlan)
    assert(aligned(df).nonEmpty)
  }

  test("full outer joins without an exchange, whose files of one value are several partitions") {
    for (all <- Seq(byKey, byBucket); n <- Seq(2, 3, 4)) {
      val df = fullJoin("k")(all.take(n): _*)
      checkAligned(df)
      assert(aligned(df).size === n)
      assert(
        aligned(df).exists(a => a.child.outputPartitioning.numPartitions > a.values.distinct.size))
    }
  }

  test("other roles, with and without adaptive execution, in generated code") {
    for {
      roles <- Seq(
        Seq("required", "optional", "optional"),
        Seq("optional", "required", "excluded"),
        Seq("optional", "excluded", "optional"))
      adaptive <- Seq("true", "false")
    } withSQLConf(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> adaptive) {
      checkAligned(multiJoin(byKey.take(3), Seq("k"), roles = roles))
    }
    inGeneratedCode(checkAligned(fullJoin("k")(byKey.take(3): _*)))
  }

  test("partitions are where Spark's settings want them") {
    val df = fullJoin("k")(byKey.take(3): _*)
    withSQLConf(SQLConf.V2_BUCKETING_ENABLED.key -> "false") {
      val shuffled = again(df)
      checkJoin(shuffled)
      assert(exchanges(shuffled).size === 3)
    }
    withSQLConf(SQLConf.V2_BUCKETING_PUSH_PART_VALUES_ENABLED.key -> "false") {
      // The tables have different values, and the same buckets.
      val missing = again(df)
      checkJoin(missing)
      assert(exchanges(missing).size === 3)
      checkAligned(fullJoin("k")(byBucket.take(3): _*))
    }
    withSQLConf(SQLConf.V2_BUCKETING_PARTIALLY_CLUSTERED_DISTRIBUTION_ENABLED.key -> "true") {
      checkAligned(again(df))
    }
  }

  test("tables that are partitioned in other ways are shuffled") {
    val eight = create("eight", Expressions.bucket(8, "k"), 0, 30)
    for (third <- Seq(eight, byKey(2), spark.range(9).selectExpr("id AS k", "id AS v"))) {
      val df = checkFullJoin("k")(byBucket.head, byBucket(1), third)
      assert(exchanges(df).size === 3)
      assert(aligned(df).isEmpty)
    }
  }

  test("filters, projections, groups and one table several times") {
    val grouped = byKey(1).groupBy("k").agg(max("v_key_b").as("m"))
    val filtered = byKey(2).where("v_key_c > 40").withColumn("x", col("v_key_c") + 1)
    checkJoin(fullJoin("k")(byKey.head, grouped, filtered))
    checkAligned(fullJoin("k")(byKey.head, byKey(1), filtered))
    checkAligned(multiJoin(Seq.fill(3)(byKey.head), Seq("k"), suffixes = Seq("_1", "_2", "_3")))
  }

  test("a filter that is made while the query runs leaves partitions empty") {
    val df = multiJoin(
      Seq(byKey.head.where("v_key_a in (5, 30)"), byKey(1)),
      Seq("k"),
      roles = Seq("required", "optional"))
    withSQLConf(PrunesAtRuntime: _*) {
      val filtered = again(df)
      checkJoin(filtered)
      assert(aligned(filtered).size === 2, filtered.queryExecution.executedPlan)
    }
  }

  test("an operator above relies only on equal keys being in one partition") {
    val join = fullJoin("k")(byKey.take(3): _*)
    val counts = join.groupBy("k").agg(count("*").as("n"))
    checkJoin(counts)
    assert(exchanges(counts).isEmpty, counts.queryExecution.executedPlan)
    // Spark would push other values through the join, if it took it for a scan's partitioning.
    for (how <- Seq("inner", "full", "left", "right")) {
      checkJoin(join.join(byKey(3), Seq("k"), how))
      checkJoin(byKey(3).join(counts, Seq("k"), how))
    }
    checkJoin(fullJoin("k")(join, byKey(3)))
  }
}
