package io.github.skewext.bucket

import io.github.skewext.SkewConf

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.joins.SortMergeJoinExec
import org.apache.spark.sql.expressions.Window
import org.apache.spark.sql.functions._

/** Joins of two or more tables of sorted files by our operator. */
class JoinSortedFilesSuite extends SortedBucketTest {

  /** Keys are in several files of a bucket, twice in some, and null in some rows. */
  private def data(i: Int, from: Int = 0, rows: Int = 60): DataFrame = spark
    .range(from, from + rows, 1, 2)
    .select(
      when(col("id") % 9 =!= i, concat(lit("device-"), (col("id") * (i + 2)) % 43)).as("k"),
      (col("id") % 4).as(s"l$i"),
      (col("id") + 100 * i).as(s"v$i"))

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    for ((name, i) <- Seq("a", "b", "c").zipWithIndex; n <- 0 until 3) {
      write(data(i, n * 50), name, Seq("k"), mode = "append")
    }
    write(data(3), "once", Seq("k"))
  }

  private def a: DataFrame = spark.table("a")
  private def b: DataFrame = spark.table("b")
  private def c: DataFrame = spark.table("c")

  private def sparks(df: DataFrame): Int = plan(df) { case j: SortMergeJoinExec => j }.size

  /** Joined by one operator, which merges so many tables. */
  private def checkOurs(df: DataFrame, tables: Int): Unit = {
    checkMerged(df, tables)
    assert(sparks(df) === 0, df.queryExecution.executedPlan)
    assert(operator(df).comesOrdered && operator(df).children.size === tables)
  }

  test("joins of all types, of rows and of columns") {
    val types = Seq("inner", "left", "right", "full", "left_semi", "left_anti")
    for (how <- types; adaptive <- Seq("true", "false")) withClue(s"$how, $adaptive: ") {
      withSQLConf("spark.sql.adaptive.enabled" -> adaptive) {
        checkOurs(a.join(b, Seq("k"), how), 2)
      }
    }
    compiled {
      for (how <- types) withClue(s"$how, columns: ")(checkOurs(a.join(b, Seq("k"), how), 2))
      checkOurs(a.join(spark.table("once"), "k"), 2)
      // A batch is a few rows, and keys go on in the next.
      withSQLConf("spark.sql.parquet.columnarReaderBatchSize" -> "3") {
        checkOurs(a.join(b, "k"), 2)
        checkOurs(a.where("v0 % 3 = 1 or l0 = 2").join(b.where("v1 > 110"), Seq("k"), "left"), 2)
      }
    }
  }

  test("what is above finds the order and the partitions that Spark's join has") {
    val renamed = b.withColumnRenamed("k", "key")
    for (key <- Seq("k", "key")) {
      val joined = a.join(renamed, col("k") === col("key"))
      val counted = joined.withColumn("n", count("*").over(Window.partitionBy(key)))
      checkOurs(counted, 2)
      checkOurs(joined.groupBy(key).agg(max("v1")), 2)
      checkOurs(joined.sortWithinPartitions(key), 2)
    }
    val left = a.join(renamed, col("k") === col("key"), "left")
    checkOurs(left.withColumn("n", count("*").over(Window.partitionBy("k"))), 2)
    // Rows without a match have a null there, and are where their own key is.
    val other = left.withColumn("n", count("*").over(Window.partitionBy("key")))
    check(other)
    assert(shuffles(other) === 1 && sorts(other) === 1)
  }

  test("three tables on one key are joined by one operator") {
    checkOurs(a.join(b, "k").join(c, "k"), 3)
    checkOurs(a.join(b, "k").join(c, Seq("k"), "left"), 3)
    checkOurs(a.join(b, Seq("k"), "left").join(c, Seq("k"), "left_anti"), 3)
    val again = a.join(b, "k").join(a.select(col("k"), col("v0").as("w0")), "k")
    checkOurs(again, 3)
  }

  test("conditions") {
    val renamed = b.withColumnRenamed("k", "key")
    checkOurs(a.join(renamed, col("k") === col("key") && col("l0") < col("l1")), 2)
    // Only some rows of the left side may match, and all come out: no order of keys says that.
    for (condition <- Seq(col("l0") < 2, col("l0") < col("l1"))) {
      val outer = a.join(renamed, col("k") === col("key") && condition, "left")
      checkMerged(outer, 2)
      assert(sparks(outer) === 1)
    }
  }

  test("keys of two columns, and rows that only a part is taken of") {
    withTable("t0", "t1") {
      for ((name, i) <- Seq("t0", "t1").zipWithIndex; n <- 0 until 2) {
        val rows = data(i, n * 50).withColumnRenamed(s"l$i", "l")
        write(rows, name, Seq("k", "l"), mode = "append")
      }
      compiled {
        val joined = spark.table("t0").join(spark.table("t1"), Seq("k", "l"))
        checkOurs(joined, 2)
        assert(joined.limit(3).collect().length === 3)
      }
    }
  }

  test("a table that has no more rows ends an inner join") {
    withTable("few") {
      write(data(1).where("k < 'device-12'"), "few", Seq("k"))
      compiled {
        val joined = a.join(spark.table("few"), "k")
        checkOurs(joined, 2)
        val read = operator(joined).metrics("numRowsOfInput0").value
        assert(read < a.where("k is not null").count())
      }
    }
  }

  test("Spark's join stays where not all is sorted files, and if that is said") {
    val half = a.join(data(1), "k")
    check(half)
    assert(sparks(half) === 1 && merges(half).size === 1)
    withSQLConf(SkewConf.BUCKET_MERGE_JOINS.key -> "false") {
      val joined = a.join(b, "k")
      checkMerged(joined, 2)
      assert(sparks(joined) === 1)
    }
  }
}
