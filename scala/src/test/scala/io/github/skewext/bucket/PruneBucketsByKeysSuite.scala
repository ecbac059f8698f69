package io.github.skewext.bucket

import io.github.skewext.platform.SkewConf

import org.apache.spark.SparkConf
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec
import org.apache.spark.sql.functions._

/** The keys of the broadcast side of a join choose the buckets of the other side. */
class PruneBucketsByKeysSuite extends BucketScanTest {

  private val Buckets = 32

  /** The page of a driver with 4 GB and a core. A hash table has at least one. */
  override protected def sparkConf: SparkConf = super.sparkConf.set("spark.buffer.pageSize", "64m")

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    save(facts.coalesce(1), "f", Buckets, "a", "b")
    save(facts.coalesce(1), "f1", Buckets, "a")
  }

  override protected def afterAll(): Unit =
    try {
      sql("DROP TABLE IF EXISTS f")
      sql("DROP TABLE IF EXISTS f1")
    } finally super.afterAll()

  private def facts: DataFrame = spark
    .range(300)
    .selectExpr(
      "if(id % 19 = 3, null, cast(id % 17 as int)) AS a",
      "if(id % 23 = 5, null, cast(id % 7 as int)) AS b",
      "id AS v")

  private def dim(values: String): DataFrame = table("a, b", values)

  private def bucketsOf(keys: DataFrame): Set[Int] =
    keys.na
      .drop()
      .select(pmod(hash(keys.columns.map(col): _*), lit(Buckets)))
      .collect()
      .map(_.getInt(0))
      .toSet

  private def check(df: DataFrame, keys: DataFrame): Unit = {
    checkAnswer(df)
    assert(collect(df.queryExecution.executedPlan) { case j: BroadcastHashJoinExec => j }.nonEmpty)
    val scan = scans(df).head
    assert(scan.optionalBucketSet.map(_.iterator.toSet).contains(bucketsOf(keys)))
    assert(bucketsRead(scan).subsetOf(bucketsOf(keys)))
    assert(explained(df).head.why.contains("keys of the other side"))
  }

  private def checkNot(df: DataFrame): Unit = {
    checkAnswer(df)
    assert(scans(df).head.optionalBucketSet.isEmpty, df.queryExecution.executedPlan)
    assert(bucketsRead(scans(df).head).size > 20)
  }

  private val few = "(1, 1), (2, 5), (2, 5), (null, 3), (99, 99)"

  test("inner and semi joins, keys packed in a long or not, on either side", Slow) {
    val f = spark.table("f")
    val d = dim(few)
    check(f.join(broadcast(d), Seq("a", "b")), d)
    check(f.join(broadcast(d), Seq("b", "a")), d)
    check(f.join(broadcast(d), Seq("a", "b"), "left_semi"), d)
    check(broadcast(d).withColumn("w", lit(1)).join(f, Seq("a", "b")), d)
    // One of three keys is a string, so they are not packed.
    val more = d.withColumn("s", lit("x"))
    check(f.withColumn("s", lit("x")).join(broadcast(more), Seq("a", "s", "b")), d)
    // One column, of another type than the other side's.
    val one = d.select("a")
    check(spark.table("f1").join(broadcast(one), "a"), one)
    val longs = table("a", "(1L), (4294967297L), (null), (5L)")
    val expected = table("a", "(1), (5)")
    check(spark.table("f1").join(broadcast(longs), "a"), expected)
    // Nobody is there.
    val empty = spark.table("f1").join(broadcast(one.where("rand() > 2")), "a")
    assert(checkAnswer(empty).isEmpty)
  }

  test("through projections, filters and other joins", Slow) {
    val d = dim(few)
    val f = spark
      .table("f")
      .where("v > 10")
      .select(col("b").as("y"), (col("v") + 1).as("w"), col("a").as("x"))
    check(f.join(broadcast(d), col("x") === col("a") && col("y") === col("b")), d)
    val other = table("x, z", "(1, 'one'), (3, 'three')")
    val joined = f
      .join(broadcast(other), Seq("x"), "left")
      .join(broadcast(d), col("x") === col("a") && col("y") === col("b"))
    check(joined, d)
    val exploded = spark.table("f").select(col("*"), explode(array(col("v"), lit(1L))).as("e"))
    check(exploded.join(broadcast(d), Seq("a", "b")), d)
    // By the bucket, as the rows are aggregated by it.
    val grouped = spark.table("f").join(broadcast(d), Seq("a", "b")).groupBy("a", "b").count()
    check(grouped, d)
    assert(scans(grouped).head.bucketedScan && exchanges(grouped).isEmpty)
    // In a stage before a shuffle.
    val shuffled = spark.table("f").join(broadcast(d), Seq("a", "b")).repartition(3, col("v"))
    check(shuffled, d)
  }

  test("with what conditions say") {
    val d = dim("(1, 1), (2, 2), (3, 3)")
    val df = spark.table("f").join(broadcast(d), Seq("a", "b")).where("a IN (2, 3, 4) AND b < 5")
    check(df, dim("(2, 2), (3, 3)"))
  }

  test("prunes nothing if it must not or cannot", Slow) {
    val d = dim(few)
    val f = spark.table("f")
    checkNot(f.join(broadcast(d), Seq("a", "b"), "left"))
    checkNot(f.join(broadcast(d), Seq("a", "b"), "left_anti"))
    checkNot(
      f.where("v > 299 OR EXISTS (SELECT 1 FROM VALUES (1, 1) t(c, d) WHERE a = c AND b = d)"))
    // A part of the bucket columns, and keys that are not what is hashed.
    checkNot(f.join(broadcast(d.select("a")), "a"))
    checkNot(f.join(broadcast(d), f("a") <=> d("a") && f("b") <=> d("b")))
    checkNot(f.join(broadcast(d), f("a") + 1 === d("a") && f("b") === d("b")))
    // Of several ints that are one byte, each has a bucket of its own.
    val bytes = table("x, y", "(1Y, 1), (2Y, 5)")
    checkNot(
      f.join(broadcast(bytes), f("a").cast("tinyint") === bytes("x") && f("b") === bytes("y")))
    // All rows are to be seen by what is between.
    val numbered = f.withColumn("n", monotonically_increasing_id() >= 0)
    checkNot(numbered.join(broadcast(d), Seq("a", "b")))
    checkNot(f.limit(250).join(broadcast(d), Seq("a", "b")))
    val df = f.join(broadcast(d), Seq("a", "b"))
    for (off <- Seq(
        SkewConf.EXCLUDED_RULES.key -> "PruneBucketsByKeys",
        SkewConf.BUCKET_PRUNING.key -> "false",
        SkewConf.BUCKET_PRUNING_MAX_VALUES.key -> "2",
        Static)) {
      withSQLConf(off)(checkNot(again(df)))
    }
    // Few keys in many bytes.
    val wide = dim(few).withColumn("s", expr("repeat(cast(a AS string), 30000000)"))
    checkNot(f.join(broadcast(wide), Seq("a", "b")).select(col("v"), length(col("s"))))
    // Few keys of many rows.
    val many = f.join(broadcast(dim(Seq.fill(30)("(1, 1)").mkString(", "))), Seq("a", "b"))
    withSQLConf(SkewConf.BUCKET_PRUNING_MAX_VALUES.key -> "2")(checkNot(again(many)))
  }
}
