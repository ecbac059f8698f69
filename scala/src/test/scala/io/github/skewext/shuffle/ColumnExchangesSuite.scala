package io.github.skewext.shuffle

import io.github.skewext.StoredTables
import io.github.skewext.explain.Explainer
import io.github.skewext.platform.SkewConf
import io.github.skewext.skew.run.KeySketchExec

import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.{ReusedExchangeExec, ShuffleExchangeLike}
import org.apache.spark.sql.expressions.Window
import org.apache.spark.sql.functions._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.{SqlInternals, TestShuffles}
import org.apache.spark.sql.{Column, DataFrame}

/** Columnar shuffles: when they are planned, and that nothing else changes. */
class ColumnExchangesSuite extends StoredTables {

  private val On = SkewConf.SHUFFLE_ENABLED.key -> "true"
  private val ByRow = SkewConf.SHUFFLE_ENABLED.key -> "false"
  private val Adaptive = "spark.sql.adaptive.enabled"

  private def input(i: Int, rows: Int = 60): DataFrame = stored(
    s"t$i-$rows",
    spark
      .range(0, rows.toLong, 1, 2)
      .select(
        when(col("id") % 11 =!= i, (col("id") * (i + 2)) % 23).as("k"),
        concat(lit("v"), col("id") + 1000 * i).as(s"v$i"),
        when(col("id") % 3 === 0, col("id").cast("int") - 30).as(s"n$i")))

  private def joined(n: Int): DataFrame = fullJoin("k")((0 until n).map(input(_)): _*)

  /** The result of `find` with shuffles of rows. */
  private def byRow[T](find: => T): T = {
    var found: Option[T] = None
    withSQLConf(ByRow) {
      found = Some(find)
    }
    found.get
  }

  private def columns(df: DataFrame): Seq[ShuffleExchangeLike] =
    exchanges(df).filter(_.isInstanceOf[ColumnShuffleExchangeExec])

  private def ofRows(df: DataFrame): Int =
    exchanges(df).count(_.isInstanceOf[ColumnShuffleOfRowsExec])

  /** The reasons why exchanges are Spark's. */
  private def reasons(df: DataFrame): Seq[RowShuffleReason.Detailed] =
    exchanges(df).flatMap(RowShuffleReason.of(_))

  test("plans columnar shuffles with the same rows, unless they are disabled", Slow) {
    for (adaptive <- Seq("true", "false")) withSQLConf(Adaptive -> adaptive) {
      val df = checkFullJoin("k")((0 until 3).map(input(_)): _*)
      assert(exchanges(df).size === 3 && columns(df).size === 3, df.queryExecution.executedPlan)
      assert(columns(df).forall(_.simpleString(100).contains(ColumnShuffleExchangeExec.Mark)))
    }
    withSQLConf(ByRow) {
      val off = joined(3)
      checkJoin(off)
      assert(exchanges(off).size === 3 && columns(off).isEmpty)
    }
  }

  test("a task that reads several partitions writes as Spark does, which takes no memory") {
    withSQLConf(On, SQLConf.SHUFFLE_PARTITIONS.key -> "1") {
      def writer(of: DataFrame) = {
        val df = fullJoin("k")(of, input(1), input(2))
        checkJoin(df)
        columns(df).collect { case ofRows: ColumnShuffleOfRowsExec =>
          ofRows.shuffleDependency.shuffleHandle.getClass.getSimpleName
        }
      }
      val joined = fullJoin("k")(input(0), input(3)).repartition(4)
      assert(writer(joined.coalesce(2)) === Seq("BypassMergeSortShuffleHandle"))
      assert(writer(joined) === Seq("SerializedShuffleHandle"))
    }
  }

  test("columns of rows where a node below has no batches, and rows of other column types", Slow) {
    withSQLConf(On) {
      // Columnar, except for the condition that is not deterministic.
      val filtered = input(1).where("n1 > 3").where("monotonically_increasing_id() >= 0")
      val computed = input(2).withColumn("v2", concat(col("v2"), lit("x")))
      val decimal =
        stored("decimal", spark.range(9).selectExpr("id k", "cast(id AS decimal(20,2)) v3"))
      val nested = stored("nested", spark.range(9).selectExpr("id k", "array(id) v4"))
      val df = fullJoin("k")(input(0), filtered, computed, decimal, nested)
      checkJoin(df)
      assert(exchanges(df).size === 5, df.queryExecution.executedPlan)
      assert(columns(df).size === 3 && ofRows(df) === 2, df.queryExecution.executedPlan)
      assert(
        reasons(df) === Seq(
          RowShuffleReason.ColumnType("decimal(20,2)"),
          RowShuffleReason.ColumnType("array")))
      withSQLConf("spark.sql.parquet.enableVectorizedReader" -> "false") {
        val none = joined(2)
        checkJoin(none)
        assert(ofRows(none) === 2)
      }
    }
  }

  test("columns of the rows of joins, aggregates, windows and unions, compiled and not", Slow) {
    val keyed = Window.partitionBy("n1", "k").orderBy("v1")
    def inputs = Seq(
      input(0).join(broadcast(input(3).select("n3").distinct()), col("n0") === col("n3"), "left"),
      input(1).groupBy("k", "n1").agg(max("v1").as("v1"), sum("n1").cast("decimal(12,0)").as("s1")),
      input(1).withColumn("r1", row_number().over(keyed)).selectExpr("k", "r1", "v1 AS w1"),
      input(2).union(input(2).selectExpr("k + 1", "upper(v2)", "n2")),
      input(3).selectExpr("nullif(k, 3) AS k", "null AS e", "v3 IS NULL AS b").drop("e"))
    for (adaptive <- Seq("true", "false"); codegen <- Seq("true", "false"))
      withSQLConf(
        On,
        Adaptive -> adaptive,
        "spark.sql.codegen.wholeStage" -> codegen,
        SQLConf.CODEGEN_FACTORY_MODE.key -> (if (codegen == "true") "FALLBACK" else "NO_CODEGEN")) {
        val df = fullJoin("k")(inputs: _*)
        checkJoin(df)
        assert(reasons(df).isEmpty && ofRows(df) === 5, df.queryExecution.executedPlan)
      }
  }

  test("columns of rows whose keys are computed, floating-point or null") {
    withSQLConf(On) {
      withAdaptive {
        for (on <- Seq(Seq("k"), Seq("k", "t"), Seq("t"))) {
          val inputs = (0 to 1).map { i =>
            input(i)
              .selectExpr(
                "cast(if(k % 5 = 0, -0.0D, k) AS double) AS k",
                "if(k % 7 = 0, null, concat(k % 3, 'x')) AS t",
                s"n$i + 1 AS n$i")
              .select(on.map(col) :+ col(s"n$i"): _*)
          }
          val df = fullJoin(on: _*)(inputs: _*)
          checkJoin(df)
          assert(ofRows(df) === 2, df.queryExecution.executedPlan)
        }
      }
    }
  }

  test("filters and projects columns below the shuffle", Slow) {
    withAdaptive(withSQLConf(On) {
      val all = (0 until 3).map(input(_))
      def check(inputs: DataFrame*)(roles: String*): DataFrame = {
        val df = multiJoin(inputs, Seq("k"), roles = roles)
        checkJoin(df)
        assert(columns(df).size === inputs.size, df.queryExecution.executedPlan)
        df
      }
      def selects(df: DataFrame) =
        collect(df.queryExecution.executedPlan) { case s: ColumnarFilterProjectExec => s }
      // Null keys are filtered from all inputs.
      val inner = check(all: _*)("required", "required", "required")
      assert(selects(inner).count(_.condition.isDefined) === 3)
      val counts = selects(inner).map(_.metrics("numOutputRows").value)
      assert(counts === all.map(_.where("k IS NOT NULL").count()))
      check(all(0).where("n0 > 3 OR v0 LIKE '%7'"), all(1).select("n1", "k"))(
        "optional",
        "optional")
      check(all(0).where("n0 > 1000"), all(1).where("n1 IS NULL").drop("n1"))(
        "optional",
        "optional")
      // A filter that keeps whole batches, and one with the value of a subquery.
      check(all(0).where("length(v0) > 0"), all(1))("optional", "optional")
      check(all(0).where("n0 > (SELECT 3)"), all(1))("optional", "optional")
      def filters(df: DataFrame) =
        SqlInternals
          .withActive(spark)(Explainer.explain(df.queryExecution))
          .joins
          .flatMap(_.inputs.map(_.filters))
      def filtered = fullJoin("k")(all(0).where("n0 > 3"), all(1))
      val byColumn = filters(filtered)
      assert(byRow(filters(filtered)) === byColumn && byColumn.exists(_.nonEmpty))
    })
  }

  test("filters evaluate no predicate before its turn", Slow) {
    withSQLConf(On, SQLConf.ANSI_ENABLED.key -> "true") {
      val rows = stored(
        "turns",
        spark.sql("""SELECT * FROM VALUES
                    |  (1L, 'num', '50', 1, 2), (2L, 'text', 'abc', 3, 4), (0L, null, null, null, null)
                    |  AS t(k, kind, s, x, y)""".stripMargin))
      val length = udf((s: String) => s.length)
      // Each with the keys that it selects: without generated code, Spark's own filter fails.
      val conditions = Seq(
        expr("kind = 'num' AND CAST(s AS INT) > 5 AND CAST(s AS INT) < 100") -> Seq(1),
        expr("""kind = 'num' AND CAST(s AS INT) > 5
               |OR kind = 'hex' AND CAST(s AS INT) < 3""".stripMargin) -> Seq(1),
        expr("(x > 0 OR y > 0) AND 100 / k > 5") -> Seq(1, 2),
        expr("CASE WHEN kind = 'num' THEN true END AND CAST(s AS INT) > 5") -> Seq(1),
        (expr("s IS NOT NULL") && length(col("s")) > 1 && length(col("s")) < 3) -> Seq(1),
        (length(col("s")) > 1 && expr("s IS NOT NULL")) -> Seq(1, 2))
      def joined(condition: Column) =
        fullJoin("k")(rows.where(condition).select("k", "x"), input(1))
      for (mode <- Seq("CODEGEN_ONLY", "NO_CODEGEN"); (condition, keys) <- conditions)
        withSQLConf(SQLConf.CODEGEN_FACTORY_MODE.key -> mode) {
          val df = joined(condition)
          assertSameRows(
            df.collect().toSeq,
            rowsWhenOff(joined(col("k").isin(keys: _*))),
            s"the rows with the keys $keys")
          val selects = collect(df.queryExecution.executedPlan) {
            case s: ColumnarFilterProjectExec if s.condition.isDefined => s
          }
          assert(selects.nonEmpty, df.queryExecution.executedPlan)
        }
    }
  }

  /** Rows with nulls at each level of nested columns. */
  private def nested: DataFrame = stored(
    "nulls-inside",
    spark
      .range(0, 300, 1, 2)
      .selectExpr(
        "id % 50 AS k",
        "id AS n",
        "if(id % 7 = 0, null, array(if(id % 3 = 0, null, id), if(id % 3 = 1, null, id))) AS a",
        "if(id % 5 = 0, null, named_struct('a', if(id % 2 = 0, null, id))) AS s",
        "array(null, named_struct('a', if(id % 2 = 0, null, id))) AS sa",
        "if(id % 5 = 1, null, map('x', if(id % 3 = 0, null, id), 'y', null)) AS m",
        "map('x', array(null, if(id % 3 = 0, null, id))) AS ma"))

  test("filters see the nulls inside arrays, maps and structs") {
    val conditions = Seq(
      "exists(a, x -> x < 5)",
      "exists(a, x -> x IS NULL)",
      "forall(a, x -> x > 100)",
      "exists(sa, x -> x.a < 5)",
      "exists(array(1, 2), x -> s.a < 5 + x)",
      "size(map_filter(m, (k, v) -> v < 5)) > 0",
      "exists(ma['x'], x -> x IS NULL) AND n > 20",
      "aggregate(a, 0L, (sum, x) -> sum + coalesce(x, 7)) % 3 = 0",
      // Without lambdas, these are interpreted only if nothing is compiled.
      "n > 290 OR s.a < 5",
      "coalesce(a[0], m['x'], 1000) > 200",
      "hash(s, a) % 2 = 0 AND sa[1].a IS NULL")
    withSQLConf(On) {
      for (mode <- Seq("FALLBACK", "NO_CODEGEN"); condition <- conditions)
        withSQLConf(SQLConf.CODEGEN_FACTORY_MODE.key -> mode) {
          val df = fullJoin("k")(nested.where(condition).select("k", "n"), input(0))
          checkJoin(df)
          assert(columns(df).size === 2, df.queryExecution.executedPlan)
        }
    }
  }

  test("joins whole blocks, or rows if a key is null or computed, or memory is exhausted", Slow) {
    def table(i: Int, isNull: String) = stored(
      s"blocks$i-${isNull.filter(_.isLetterOrDigit)}",
      spark
        .range(0, 9000, 1, 2)
        .selectExpr(
          s"if($isNull, null, sha1(string(id * ${i + 2} % 8999))) AS k",
          "cast(id % 7 AS double) AS d",
          s"if(id % 5 = $i, null, regexp_replace(md5(string(id)), '^.{8}', '$$0-')) AS u$i",
          s"cast(id AS int) AS n$i"))
    withSQLConf(On, "spark.sql.shuffle.partitions" -> "2") {
      val cases = for {
        nulls <- Seq(
          "false" -> "1000000",
          "false" -> "5000",
          "id = 4000" -> "1000000",
          "id % 10 = 3" -> "1000000")
        keys <- Seq(Seq("k"), Seq("k", "d"))
      } yield (nulls, keys)
      for (((isNull, limit), keys) <- covering(cases))
        withSQLConf(SkewConf.MULTI_JOIN_MAX_ROWS_IN_MEMORY.key -> limit) {
          val others = Seq("d").diff(keys)
          val df = fullJoin(keys: _*)((0 until 3).map(table(_, isNull).drop(others: _*)): _*)
          checkJoin(df)
          assert(columns(df).size === 3, df.queryExecution.executedPlan)
        }
    }
  }

  test("filters columns of every type as it filters rows", Slow) {
    val types = Seq(
      "id % 2 = 0",
      "cast(id % 100 AS byte)",
      "cast(id AS short)",
      "cast(id AS int)",
      "cast(id AS float)",
      "cast(id AS double)",
      "cast(id AS decimal(12, 3))",
      "cast(id AS string)",
      "cast(cast(id AS string) AS binary)",
      "timestamp_seconds(id)",
      "date_add(DATE'2020-01-01', cast(id AS int))")
    withSQLConf(On) {
      val table = stored(
        "types",
        spark
          .range(200)
          .selectExpr("id % 50 AS k" +: "id AS n" +: types.zipWithIndex.map { case (e, c) =>
            s"CASE WHEN id % 7 <> $c THEN $e END AS c$c"
          }: _*))
      val df = fullJoin("k")(table.where("n % 3 > 0").drop("n"), input(0))
      checkJoin(df)
      assert(columns(df).size === 2, df.queryExecution.executedPlan)
    }
  }

  test("shuffles rows that are not stable only if Spark compares their checksums", Slow) {
    for {
      (checksum, i) <- (None +: PlanColumnExchanges.Checksums.map(Some(_))).zipWithIndex
      (extra, isStable) <- Seq("rand() AS r" -> false, "k AS r" -> true)
    } withSQLConf(
      On +: PlanColumnExchanges.Checksums.map(k => k -> checksum.contains(k).toString): _*) {
      val cached = input(0).selectExpr("k", "n0", s"$i AS i", extra).cache()
      try {
        val df = fullJoin("k")(cached, input(1))
        checkJoin(df)
        val n = if (isStable || checksum.isEmpty) 2 else 1
        assert(columns(df).size === n, (checksum, extra))
        assert(reasons(df) === Seq.fill(2 - n)(RowShuffleReason.NotStable.given))
      } finally {
        cached.unpersist()
      }
    }
  }

  test("shuffles rows if there are many partitions") {
    withSQLConf(On, "spark.sql.shuffle.partitions" -> "6000", Adaptive -> "true") {
      val df = joined(2)
      df.queryExecution.executedPlan
      assert(columns(df).isEmpty, df.queryExecution.executedPlan)
      assert(reasons(df).map(_.reason) === Seq.fill(2)(RowShuffleReason.ManyRuns))
    }
    // Of two columns each.
    for ((partitions, byColumn) <- Seq("8192" -> 2, "8193" -> 0)) {
      withSQLConf(On, "spark.sql.shuffle.partitions" -> partitions) {
        val df = fullJoin("k")((0 to 1).map(i => input(i).drop(s"n$i")): _*)
        df.queryExecution.executedPlan
        assert(columns(df).size === byColumn, partitions)
      }
    }
  }

  test("shuffles columns of cached tables and ORC files") {
    withSQLConf(On) {
      val cached = spark.range(50).selectExpr("id % 7 k", "cast(id AS double) v1").cache()
      try {
        val orc = folder.resolve("orc").toString
        input(2).write.orc(orc)
        withAdaptive {
          val df = fullJoin("k")(input(0), cached, spark.read.orc(orc))
          checkJoin(df)
          assert(columns(df).size === 3, df.queryExecution.executedPlan)
        }
      } finally cached.unpersist(blocking = true)
    }
  }

  test("shuffles partition columns, keys of two types, and null keys") {
    withSQLConf(On) {
      def of(i: Int) = {
        val path = folder.resolve(s"parts$i").toString
        spark
          .range(40)
          .selectExpr(
            "nullif(id % 5, 1) AS k",
            "date_add(DATE'2020-01-01', cast(id % 4 AS int)) d",
            s"encode(cast(id AS string), 'utf-8') b$i",
            s"id % 2 = 0 f$i",
            s"id % 3 p$i")
          .write
          .partitionBy(s"p$i")
          .parquet(path)
        spark.read.parquet(path)
      }
      val df = fullJoin("k", "d")(of(0), of(1))
      checkJoin(df)
      assert(columns(df).size === 2)
    }
  }

  test("Spark's exchange and a columnar shuffle of the same rows reuse each other", Slow) {
    withSQLConf(On, "spark.sql.autoBroadcastJoinThreshold" -> "-1") {
      for (adaptive <- Seq("true", "false")) withSQLConf(Adaptive -> adaptive) {
        val ours = fullJoin("k")(input(0), input(1)).selectExpr("k", "v0", "v1 AS v")
        val sparks = input(0).join(input(2), Seq("k"), "full").selectExpr("k", "v0", "v2 AS v")
        for (df <- Seq(ours.union(sparks), sparks.union(ours))) {
          checkJoin(df)
          val plan = df.queryExecution.executedPlan
          val reused = collectWithSubqueries(plan) { case r: ReusedExchangeExec => r }
          assert(reused.size === 1, plan)
        }
      }
    }
  }

  test("adaptive execution reads row counts and sizes and coalesces partitions") {
    withSQLConf(
      Adaptive -> "true",
      "spark.sql.shuffle.partitions" -> "20",
      "spark.sql.adaptive.coalescePartitions.parallelismFirst" -> "false") {
      def statistics(df: DataFrame) = {
        checkJoin(df)
        val plan = df.queryExecution.executedPlan
        val reads = collect(plan) { case r: AQEShuffleReadExec if r.hasCoalescedPartition => r }
        assert(reads.size === 3)
        collect(plan) { case s: ShuffleQueryStageExec => s.getRuntimeStatistics }
          .map(s => (s.rowCount, s.sizeInBytes))
      }
      val rows = byRow(statistics(joined(3)))
      assert(rows.forall(_._1.contains(BigInt(60))))
      withSQLConf(On) {
        val df = joined(3)
        assert(statistics(df) === rows)
        assert(columns(df).size === 3)
      }
    }
  }

  test("has the metrics of a shuffle of rows, except for the bytes written") {
    val compared =
      Set("dataSize", "numPartitions", "shuffleRecordsWritten", "recordsRead")
    def metrics(df: DataFrame): Seq[Map[String, Long]] =
      exchanges(df).map(_.metrics.collect { case (name, m) if compared(name) => name -> m.value })
    withSQLConf(Adaptive -> "false") {
      val off = byRow {
        val df = joined(3)
        df.collect()
        df
      }
      withSQLConf(On) {
        val on = joined(3)
        on.collect()
        assert(columns(on).size === 3)
        assert(metrics(on) === metrics(off) && metrics(on).forall(_("recordsRead") == 60))
      }
    }
  }

  test("samples the same keys as a shuffle of rows") {
    withSQLConf(Adaptive -> "true", SkewConf.SKEW_OUTPUT_SAMPLE_EVERY.key -> "3") {
      def sketches(df: DataFrame) = {
        checkJoin(df)
        collect(df.queryExecution.executedPlan) { case k: KeySketchExec => k }
          .map(k => (k.metrics("numSampledRows").value, k.sketch.map(_.toString)))
      }
      def df = fullJoin("k")(input(0, 500), input(1, 500))
      val rows = byRow(sketches(df))
      assert(rows.size === 2 && rows.forall(_._1 > 50))
      withSQLConf(On) {
        val on = df
        assert(sketches(on).map(_._1) === rows.map(_._1))
        assert(columns(on).size === 2)
      }
    }
  }

  test("writes many partitions, empty tables, and strings that fill a flush", Slow) {
    withSQLConf(On, "spark.sql.shuffle.partitions" -> "300") {
      val empty = stored("empty", input(1).where("false"))
      val long = stored(
        "long",
        spark.range(0, 90, 1, 1).selectExpr("id % 40 k", "repeat(cast(id AS string), 200000) l"))
      val df = fullJoin("k")(input(0), empty, long)
        .selectExpr("k", "v0", "n0", "v1", "md5(l)")
      checkJoin(df)
      assert(columns(df).size === 3, df.queryExecution.executedPlan)
    }
  }

  test("retried map tasks write the same blocks") {
    withSQLConf(On, Adaptive -> "false") {
      val df = fullJoin("k")(input(0), input(1), input(2).selectExpr("k + 1 AS k", "v2"))
      val rows = df.collect()
      assert(columns(df).size === 3 && ofRows(df) === 1)
      columns(df).foreach { case e: ColumnShuffleExchangeExec =>
        TestShuffles.lose(e.shuffleId)
      }
      assertSameRows(df.queryExecution.executedPlan.executeCollectPublic(), rows.toSeq, "before")
    }
  }

  test("splits a skewed partition", Slow) {
    withSQLConf(SplitsFrom10KB :+ On: _*) {
      for (large <- Seq(hot, hot.selectExpr("k", "h + 1 AS h"))) {
        val df = fullJoin("k")(large, input(1))
        checkJoin(df)
        assert(columns(df).size === 2)
        assert(
          df.queryExecution.executedPlan.toString.contains("skew"),
          df.queryExecution.executedPlan)
      }
    }
  }
}
