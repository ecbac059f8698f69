package io.github.skewext.technique

import java.util.concurrent.atomic.AtomicReference
import java.util.concurrent.{CountDownLatch, FutureTask, TimeUnit}

import io.github.skewext.PythonApi

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project, Union}
import org.apache.spark.sql.execution.datasources.{FileIndex, HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.skewext.{SqlInternals, TestSessions}

/** Files that are added while a query runs that reads a side twice. */
class ListFilesOnceSuite extends TechniqueTest {

  private def indexes(plan: LogicalPlan): Seq[FileIndex] =
    plan.collect { case scan: LogicalRelation => scan.relation }.collect {
      case files: HadoopFsRelation => files.location
    }

  private def fixed(df: DataFrame): Int =
    indexes(df.queryExecution.optimizedPlan).count(_.isInstanceOf[FixedFiles])

  /** `facts` has the keys 1 and 2, `dims` has 2 and 3. */
  private def withTables(partitioned: Boolean)(body: => Unit): Unit =
    withTable("facts", "dims") {
      val by = if (partitioned) "PARTITIONED BY (p)" else ""
      for ((table, keys) <- Seq("facts" -> "(1, 1), (2, 1)", "dims" -> "(2, 1), (3, 1)")) {
        sql(s"CREATE TABLE $table (k LONG, p INT) USING parquet $by")
        sql(s"INSERT INTO $table SELECT /*+ COALESCE(1) */ * FROM VALUES $keys")
        // Spark does not know the size of a partitioned table without statistics.
        sql(s"ANALYZE TABLE $table COMPUTE STATISTICS")
      }
      body
    }

  private def facts = spark.table("facts").withColumnRenamed("p", "v")

  private def dims = spark.table("dims").withColumnRenamed("p", "w")

  /** True for each row, after the INSERT of a test. */
  private val waits = udf((_: Long) => InsertMeanwhile.awaitOnce())

  /** Runs the query, and inserts while it reads the first row of `facts`. */
  private def rowsWith(insert: String)(df: DataFrame): Seq[String] = {
    val query = new FutureTask(() => shown(df))
    InsertMeanwhile.during(new Thread(query).start())(sql(insert))
    query.get(60, TimeUnit.SECONDS)
  }

  private def shown(df: DataFrame): Seq[String] = df.collect().map(_.toString).sorted.toSeq

  private def checkInsert(
      technique: String,
      partitioned: Boolean,
      how: String,
      insert: String,
      swap: Boolean = false): Unit = withTables(partitioned) {
    def join(large: DataFrame)(by: (DataFrame, DataFrame) => DataFrame) =
      if (swap) by(dims, large) else by(large, dims)
    val side = Map("side" -> (if (swap) "left" else "right"))
    val df = join(facts.where(waits(col("k"))))(skewJoin(_, _, "k", how, technique, side))
    def expected = shown(join(facts)(stockJoin(_, _, "k", how)))
    val before = expected
    val rows = rowsWith(insert)(df)
    assert(rows === before || rows === expected, df.queryExecution)
    assert(fixed(df) > 1)
  }

  for {
    technique <- Seq("broadcast_map", "broadcast", "iterative_broadcast")
    partitioned <- Seq(false, true)
  } {
    val kind = if (partitioned) "partitioned" else "unpartitioned"
    test(s"an INSERT while $technique finds the unmatched rows, $kind", Slow(", unpartitioned")) {
      for (adaptive <- Seq("true", "false")) {
        withSQLConf("spark.sql.adaptive.enabled" -> adaptive) {
          checkInsert(technique, partitioned, "full", "INSERT INTO facts VALUES (3, 2)")
          if (technique != "broadcast") {
            val intoDims = "INSERT INTO dims VALUES (1, 2)"
            checkInsert(technique, partitioned, "left_anti", intoDims, swap = true)
          }
        }
      }
    }
  }

  test("scans for which Spark has pruned partitions at other times read the same files") {
    withTables(partitioned = true) {
      def pruned = facts.where("v < 5").queryExecution.optimizedPlan
      val before = pruned
      sql("INSERT INTO facts VALUES (3, 2)")
      val after = pruned
      assert(indexes(before).head.inputFiles.length < indexes(after).head.inputFiles.length)
      val made = skewJoin(facts, dims, "k", "inner", "broadcast").queryExecution.optimizedPlan
      for (plans <- Seq(Seq(before, after), Seq(after, before))) {
        val all = (plans :+ made).map(plan => Project(plan.output.take(1), plan))
        val Seq(first, second) = indexes(ListFilesOnce(Union(all))).take(2)
        assert(first eq second)
        assert(first.listFiles(Nil, Nil).map(_.values.getInt(0)).sorted === Seq(1, 2))
      }
    }
  }

  test("partitions are pruned by filters that only one of the scans has") {
    withTables(partitioned = true) {
      sql("INSERT INTO facts VALUES (3, 2), (2, 7)")
      for (filter <- Seq("v > 1", "v < 5", "v IN (2, 7) AND k > 0")) {
        val left = facts.where(filter)
        assert(fixed(check(left, dims, "k", "full", "broadcast_map", Map("side" -> "right"))) === 4)
      }
    }
  }

  test("partitions are pruned, and sizes known, as by stock Spark") {
    withTable("t") {
      sql("CREATE TABLE t (k LONG, p INT) USING parquet PARTITIONED BY (p)")
      sql("INSERT INTO t VALUES (1, 1), (2, 1), (3, 2), (4, 5)")
      def move(to: String) = sql(s"ALTER TABLE t PARTITION (p = 5) SET LOCATION '$to'")
      def t(p: String) = spark.table("t").where(p)
      def sizes(df: DataFrame) = df.queryExecution.optimizedPlan.collect {
        case scan: LogicalRelation => scan.stats.sizeInBytes
      }
      val (one, two) = (t("p = 1"), t("p < 3").toDF("k", "w"))
      val df = skewJoin(one, two, "k", "full", "adaptive")
      val stock = stockJoin(one, two, "k", "full")
      move("unreachable://somewhere/")
      try {
        assert(fixed(df) === 2)
        assert(sizes(df) === sizes(stock))
        assert(shown(df) === shown(stock))
      } finally withTempPath(path => move(path.toURI.toString))
      // Spark does not know the size of all partitions.
      val all = spark.table("t").toDF("k2", "p2")
      assert(sizes(df.join(all, expr("k = k2"))) === sizes(stock.join(all, expr("k = k2"))))
    }
  }

  test("a table that is read once, and queries without a technique, keep Spark's files") {
    withTables(partitioned = false) {
      assert(fixed(check(facts, dims, "k", "left", "broadcast_map", Map("side" -> "right"))) === 0)
      assert(fixed(facts.join(facts, "k")) === 0)
    }
  }

  test("two reads of a path are not one table") {
    withTempPath { path =>
      def read = spark.read.parquet(path.getPath)
      table("k, v", "(1L, 1), (2L, 2)").write.parquet(path.getPath)
      val before = read
      table("k, v", "(3L, 3)").write.mode("append").parquet(path.getPath)
      val df = skewJoin(before, read.toDF("k", "w"), "k", "right", "broadcast_map")
      assert(shown(df) === Seq("[1,1,1]", "[2,2,2]", "[3,null,3]"))
    }
  }

  test("a session that registered late") {
    val bare = TestSessions.withoutExtensions(spark)
    PythonApi.register(bare)
    withTempPath { path =>
      table("k, v", "(1L, 1), (2L, 2)").write.parquet(path.getPath)
      SqlInternals.withActive(bare) {
        val left = bare.read.parquet(path.getPath)
        val right = bare.sql("SELECT * FROM VALUES (2L, 1), (3L, 1) AS t(k, w)")
        val df = skewJoin(left, right, "k", "full", "broadcast_map", Map("side" -> "right"))
        assert(shown(df) === Seq("[1,1,null]", "[2,2,1]", "[3,null,1]"))
        assert(fixed(df) === 2)
      }
    }
  }
}

/** Lets a test insert while a task of a query waits. */
private object InsertMeanwhile {

  private val latches = new AtomicReference[Option[(CountDownLatch, CountDownLatch)]](None)

  /** Starts a query, and inserts when one of its tasks waits. */
  def during(start: => Unit)(insert: => Unit): Unit = {
    val (begun, inserted) = (new CountDownLatch(1), new CountDownLatch(1))
    latches.set(Some((begun, inserted)))
    try {
      start
      assert(begun.await(60, TimeUnit.SECONDS))
      insert
    } finally inserted.countDown()
  }

  /** Others do not wait, so that there are cores for the INSERT. */
  def awaitOnce(): Boolean = {
    latches.getAndSet(None).foreach { case (begun, inserted) =>
      begun.countDown()
      inserted.await(60, TimeUnit.SECONDS)
    }
    true
  }
}
