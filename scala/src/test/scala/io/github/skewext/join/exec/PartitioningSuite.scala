package io.github.skewext.join.exec

import io.github.skewext.MultiJoinTest
import io.github.skewext.platform.SkewConf

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.physical.{HashPartitioning, UnknownPartitioning}
import org.apache.spark.sql.expressions.Window
import org.apache.spark.sql.functions._

/**
 * Exchanges: one for every input that needs one, and none above the join that it makes needless.
 * What the join claims of its partitions must be true, or operators above give wrong answers: so
 * every plan without an exchange is checked for its answer.
 */
class PartitioningSuite extends MultiJoinTest {

  private def input(i: Int): DataFrame = spark
    .range(0, 60, 1, 2)
    .select(
      when(col("id") % 11 =!= i, (col("id") * (i + 2)) % 23).as("k"),
      when(col("id") % 13 =!= i, col("id") % 5).as("l"),
      (col("id") + 1000 * i).as(s"v$i"))

  private def inputs(n: Int): Seq[DataFrame] = (0 until n).map(input)

  private def checkExchanges(df: DataFrame, expected: Int): Unit = {
    checkJoin(df)
    assert(exchanges(df).size === expected, df.queryExecution.executedPlan)
  }

  for (n <- Seq(2, 3, 7))
    test(s"one exchange for each of $n inputs, and no sort", Slow("7 inputs, and no sort")) {
      withAdaptive {
        val joined = fullJoin("k")(inputs(n): _*)
        checkExchanges(joined, n)
        assert(collect(joined.queryExecution.executedPlan) {
          case s: org.apache.spark.sql.execution.SortExec => s
        }.isEmpty)
        val stock = stockChain("k")(inputs(n): _*)
        stock.collect()
        // What this project is for: the stock chain shuffles its intermediate results again.
        assert(exchanges(stock).size === 2 * n - 2)
      }
    }

  test("no exchange for inputs that are partitioned by the key") {
    withAdaptive {
      val byKey = inputs(3).map(_.repartition(4, col("k")))
      checkExchanges(fullJoin("k")(byKey: _*), 3)
      checkExchanges(fullJoin("k")(byKey.head, input(3), byKey(1)), 3)
      val grouped = inputs(3).zipWithIndex.map { case (df, i) =>
        df.groupBy("k").agg(sum(s"v$i").as(s"s$i"))
      }
      checkExchanges(fullJoin("k")(grouped: _*), 3)
    }
  }

  test("no exchange for bucketed tables, whatever their number", Slow) {
    withTable("b0", "b1", "b2", "c0") {
      inputs(3).zipWithIndex.foreach { case (df, i) =>
        df.write.bucketBy(4, "k").sortBy("k").saveAsTable(s"b$i")
      }
      input(3).write.bucketBy(4, "k", "l").saveAsTable("c0")
      val tables = (0 until 3).map(i => spark.table(s"b$i"))
      withAdaptive {
        checkExchanges(fullJoin("k")(tables: _*), 0)
        checkExchanges(fullJoin("k")(tables: _*).groupBy("k").count(), 0)
        checkExchanges(fullJoin("k")(tables :+ input(3): _*), 1)
        // Buckets by k and l are no partitioning by k, nor is one by k one by k and l that
        // others can be brought to.
        checkExchanges(fullJoin("k")(tables :+ spark.table("c0"): _*), 1)
        checkExchanges(fullJoin("k", "l")(tables.take(2) :+ spark.table("c0"): _*), 2)
      }
      withSQLConf("spark.sql.sources.bucketing.enabled" -> "false") {
        checkExchanges(fullJoin("k")(tables: _*), 3)
      }
    }
  }

  test("no exchange for cached inputs that are partitioned by the key") {
    val cached = inputs(3).map(_.repartition(4, col("k")).cache())
    try {
      withAdaptive {
        val joined = fullJoin("k")(cached: _*)
        joined.collect()
        // The cache keeps the exchanges that made it; the plan above it has none.
        val above = joined.queryExecution.executedPlan.collect {
          case e: org.apache.spark.sql.execution.exchange.ShuffleExchangeLike => e
        }
        assert(above.isEmpty)
        checkJoin(joined)
      }
    } finally cached.foreach(_.unpersist())
  }

  private val NoBroadcast = "spark.sql.autoBroadcastJoinThreshold" -> "-1"

  test("operators above that need the key together add no exchange", Slow) {
    withSQLConf(NoBroadcast)(withAdaptive {
      val joined = fullJoin("k", "l")(inputs(3): _*)
      val window = Window.partitionBy("k", "l").orderBy("v0", "v1", "v2")
      checkExchanges(joined.groupBy("k", "l").agg(count("*"), sum("v1")), 3)
      checkExchanges(joined.groupBy("l", "k").agg(max("v2")), 3)
      checkExchanges(joined.select("k", "l").distinct(), 3)
      checkExchanges(joined.withColumn("n", row_number().over(window)), 3)
      checkExchanges(joined.repartition(col("k"), col("l")), 3)
      // More columns than the key are together where the key is.
      checkExchanges(joined.groupBy("k", "l", "v0").count(), 3)
      checkExchanges(joined.join(input(4), Seq("k", "l"), "left"), 4)
      checkExchanges(joined.join(input(4), Seq("k", "l"), "full"), 4)
    })
  }

  test("operators above that need a part of the key together do shuffle", Slow) {
    withSQLConf(NoBroadcast)(withAdaptive {
      val joined = fullJoin("k", "l")(inputs(3): _*)
      checkExchanges(joined.groupBy("k").agg(count("*")), 4)
      checkExchanges(joined.groupBy("l").agg(count("*")), 4)
      checkExchanges(joined.withColumn("n", count("*").over(Window.partitionBy("l"))), 4)
      checkExchanges(joined.join(input(4), Seq("k")), 5)
      checkExchanges(joined.groupBy("v0").count(), 4)
      checkExchanges(joined.repartition(col("l")), 4)
    })
  }

  test("a join above on another column, or on an input's key by its side, shuffles") {
    withSQLConf(NoBroadcast)(withAdaptive {
      val joined = fullJoin("k")(inputs(2): _*)
      checkExchanges(joined.join(input(3).select(col("k").as("v0")), "v0"), 4)
      // A copy of the first input's key is null where that input lacks the key.
      val copied = fullJoin("k")(input(0).withColumn("k0", col("k")), input(1))
      checkExchanges(copied.groupBy("k0").count(), 3)
      checkExchanges(copied.groupBy("k0", "k").count(), 2)
    })
  }

  test("partitions are claimed by the key of the output") {
    withSQLConf("spark.sql.adaptive.enabled" -> "false") {
      val join = operator(fullJoin("k", "l")(inputs(2): _*))
      assert(join.outputPartitioning === HashPartitioning(join.keyOutput, shufflePartitions))
      assert(join.outputOrdering.isEmpty)
    }
  }

  test("each row is in the partition that is claimed for it") {
    withSQLConf(
      "spark.sql.adaptive.enabled" -> "false",
      SkewConf.MULTI_JOIN_SPREAD_NULL_KEYS.key -> "false") {
      for (roles <- Seq(Seq("optional", "optional"), Seq("required", "excluded"))) {
        val joined = multiJoin(inputs(2), Seq("k", "l"), roles = roles)
        assert(joined.rdd.getNumPartitions === shufflePartitions)
        val place = expr(s"pmod(hash(k, l), $shufflePartitions)")
        assert(joined.where(spark_partition_id() === place).count() === joined.count())
        assert(joined.count() > 0)
      }
    }
  }

  test(
    "one column of an input as two keys: nothing is claimed that is false of other inputs",
    Slow) {
    val pairs = spark.range(0, 40, 1, 2).selectExpr("id % 4 AS p", "id AS q", "id AS v")
    val shuffled = pairs.repartition(shufflePartitions + 2, col("p"), col("q"))
    val once = table("x, w", "(1L, 10), (7L, 70)")
    withAdaptive {
      for ((inputs, keys) <- Seq(
          Seq(once, pairs) -> Seq(Seq("x", "x"), Seq("p", "q")),
          Seq(once, shuffled) -> Seq(Seq("x", "x"), Seq("p", "q")),
          Seq(shuffled, once) -> Seq(Seq("p", "q"), Seq("x", "x")))) {
        val joined = multiJoin(inputs, Seq("a", "b"), keys)
        checkJoin(joined)
        for (column <- Seq("a", "b")) checkJoin(joined.groupBy(column).count())
        checkJoin(joined.groupBy("a", "b").count())
      }
    }
  }

  test("one column of an input as two keys of different types") {
    val joined = multiJoin(
      Seq(table("x, w", "(1, 10), (7, 70)"), table("p, q, v", "(1, 1L, 5), (7, 8L, 6)")),
      Seq("a", "b"),
      Seq(Seq("x", "x"), Seq("p", "q")))
    checkJoin(joined)
    assert(joined.count() === 3)
  }

  // An input may be partitioned by several columns at a time, of which another input shares only
  // one: an inner join on x = y leaves its result partitioned by x and by y.
  for {
    allKeys <- Seq("true", "false")
    (second, third) <- Seq("p" -> "q", "q" -> "q")
  } test(
    s"inputs by x and y at once, by $second, by $third; all key columns needed: $allKeys",
    Slow) {
    withSQLConf(
      "spark.sql.requireAllClusterKeysForCoPartition" -> allKeys,
      "spark.sql.adaptive.enabled" -> "false",
      NoBroadcast) {
      val a = spark.range(0, 12, 1, 2).selectExpr("id AS x", "id AS va")
      val b = spark.range(0, 12, 1, 2).selectExpr("id AS y", "id AS vb")
      val both = a.join(b, col("x") === col("y"))
      val pairs = spark.range(0, 40, 1, 2).selectExpr("id % 4 AS p", "id % 10 AS q", "id AS v")
      val partitioned = Seq(second, third).map(c => pairs.repartition(shufflePartitions, col(c)))
      for {
        (inputs, keys) <- Seq(
          (both +: partitioned.take(1), Seq(Seq("x", "y"), Seq("p", "q"))),
          (both +: partitioned, Seq(Seq("x", "y"), Seq("p", "q"), Seq("p", "q"))))
      } {
        val joined = multiJoin(inputs, Seq("a", "b"), keys)
        checkJoin(joined)
        checkJoin(joined.groupBy("a").count())
        checkJoin(joined.groupBy("b").count())
      }
    }
  }

  test("a key that is padded for the comparison is no partitioning of the output") {
    withTable("c3", "c5") {
      sql("CREATE TABLE c3 (k CHAR(3)) USING parquet CLUSTERED BY (k) INTO 4 BUCKETS")
      sql("CREATE TABLE c5 (k CHAR(5)) USING parquet CLUSTERED BY (k) INTO 4 BUCKETS")
      for (t <- Seq("c3", "c5"); k <- Seq("a", "b", "abc")) sql(s"INSERT INTO $t VALUES ('$k')")
      val joined = fullJoin("k")(spark.table("c3"), spark.table("c5"))
      withSQLConf("spark.sql.adaptive.enabled" -> "false") {
        checkExchanges(again(joined), 2)
        assert(
          operator(again(joined)).outputPartitioning
            === UnknownPartitioning(shufflePartitions))
      }
    }
  }
}
