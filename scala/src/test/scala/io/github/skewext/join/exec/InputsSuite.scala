package io.github.skewext.join.exec

import io.github.skewext.MultiJoinTest

import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.{FileSourceScanExec, RDDScanExec}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.storage.StorageLevel

/** Inputs of every kind and size: files, caches, rows, empty ones, many of them, partitioned anyhow. */
class InputsSuite extends MultiJoinTest {

  private def input(i: Int, rows: Int = 40): DataFrame =
    spark
      .range(0, rows, 1, 2)
      .select(
        when(col("id") % 7 =!= i, (col("id") * (i + 1)) % 31).as("k"),
        concat(lit(s"row of $i "), col("id")).as(s"s$i"),
        (col("id") * 1.5).as(s"d$i"))

  private def inputs(n: Int): Seq[DataFrame] = (0 until n).map(input(_))

  for (format <- Seq("parquet", "orc", "json"))
    test(
      s"$format files, read in columns and in rows",
      Slow(
        "orc files, read in columns and in rows",
        "parquet files, read in columns and in rows")) {
      withTempPath { dir =>
        val files = inputs(3).zipWithIndex.map { case (df, i) =>
          val path = s"$dir/$i"
          df.write.format(format).save(path)
          spark.read.schema(df.schema).format(format).load(path)
        }
        for (vectorized <- if (format == "json") Seq("false") else Seq("true", "false")) {
          // Interpreted, Spark does not read columns.
          withSQLConf(
            s"spark.sql.$format.enableVectorizedReader" -> vectorized,
            "spark.sql.codegen.wholeStage" -> "true") {
            val joined = checkFullJoin("k")(files: _*)
            val scans = collect(joined.queryExecution.executedPlan) { case s: FileSourceScanExec =>
              s
            }
            assert(scans.map(_.supportsColumnar) === Seq.fill(3)(vectorized.toBoolean))
          }
        }
      }
    }

  test("cached inputs") {
    val cached = Seq(
      input(0).persist(StorageLevel.MEMORY_ONLY),
      input(1).persist(StorageLevel.DISK_ONLY),
      input(2))
    try {
      withAdaptive {
        val joined = checkFullJoin("k")(cached: _*)
        assert(collect(joined.queryExecution.executedPlan) { case s: InMemoryTableScanExec =>
          s
        }.size === 2)
      }
    } finally cached.foreach(_.unpersist())
  }

  test("rows that are objects, rows of a typed Dataset, rows of a checkpoint") {
    val session = spark
    import session.implicits._
    val joined = checkFullJoin("k")(
      frame("k INT, a STRING")(Row(1, "x"), Row(null, "y"), Row(2, null)),
      Seq((1, "p"), (3, "q")).toDS().map(t => (t._1 + 1, t._2)).toDF("k", "b"),
      table("k, c", "(2, 1), (3, 2)").localCheckpoint())
    assert(collect(joined.queryExecution.executedPlan) { case s: RDDScanExec => s }.nonEmpty)
  }

  test("empty inputs, with partitions and without", Slow) {
    val some = table("k, a", "(1, 1), (null, 2)")
    val noRows = input(1).where("k > 1000")
    val noPartitions = spark.createDataFrame(spark.sparkContext.emptyRDD[Row], noRows.schema)
    assert(noPartitions.rdd.getNumPartitions === 0)
    withSQLConf(KeepEmptyInputs: _*)(withAdaptive {
      for (empty <- Seq(noRows, noPartitions)) {
        assert(checkFullJoin("k")(some, empty, input(2)).count() > 0)
        assert(checkFullJoin("k")(empty, some).count() === 2)
        assert(checkFullJoin("k")(some, empty).count() === 2)
        assert(checkFullJoin("k")(empty, empty).count() === 0)
        for (roles <- Seq(Seq("required", "required"), Seq("optional", "excluded"))) {
          checkJoin(multiJoin(Seq(some, empty), Seq("k"), roles = roles))
          checkJoin(multiJoin(Seq(empty, some), Seq("k"), roles = roles))
        }
      }
    })
  }

  test("no exchange where every input is one partition") {
    withAdaptive {
      val joined = checkFullJoin("k")(inputs(3).map(_.coalesce(1)): _*)
      assert(exchanges(joined).isEmpty)
      assert(joined.rdd.getNumPartitions === 1)
    }
  }

  test("one shuffle partition") {
    withSQLConf("spark.sql.shuffle.partitions" -> "1")(withAdaptive {
      assert(exchanges(checkFullJoin("k")(inputs(3): _*)).size === 3)
    })
  }

  test("inputs that come with different numbers of partitions") {
    withAdaptive {
      val joined = checkFullJoin("k")(
        input(0).repartition(7, col("k")),
        input(1).repartition(4, col("k")),
        input(2).repartition(5),
        input(3).repartitionByRange(6, col("k")),
        input(4).coalesce(1))
      assert(
        operator(joined).outputPartitioning.numPartitions === operator(joined).children
          .map(_.outputPartitioning.numPartitions)
          .distinct
          .head)
    }
  }

  test("more shuffle partitions than keys, coalesced and not") {
    withSQLConf("spark.sql.shuffle.partitions" -> "20")(withAdaptive {
      checkFullJoin("k")(inputs(2): _*)
    })
  }

  test("forty inputs", Slow) {
    val n = 40
    val forty = (0 until n).map(input(_, 12))
    val joined = multiJoin(forty, Seq("k"), indicator = "sources")
    val joinedRows = joined.collect()
    assert(operator(joined).children.size === n)
    assert(exchanges(joined).size === n)
    // The chain of forty joins is slow to plan, so each input is looked for by itself, with the
    // keys counted: those in all inputs as products, null keys one by one.
    val rowsOf = forty.map(_.collect().toSeq)
    val keysOf = rowsOf.map(_.map(r => Option(r.get(0))))
    for (i <- 0 until n) withClue(s"input $i: ") {
      assertSameRows(
        joinedRows
          .filter(_.getAs[Seq[Int]]("sources").contains(i))
          .map(r => Row(r.getAs[Any]("k"), r.getAs[Any](s"s$i"), r.getAs[Any](s"d$i")))
          .distinct
          .toSeq,
        rowsOf(i),
        "that input")
    }
    val products = keysOf.flatten.flatten.distinct.map { key =>
      keysOf.map(_.count(_.contains(key))).filter(_ > 0).product
    }
    assert(joinedRows.length === products.sum + keysOf.flatten.count(_.isEmpty))
  }

  test("returns columns of all types unchanged") {
    def wide(i: Int) = spark
      .range(0, 6, 1, 2)
      .selectExpr(
        "if(id = 5, null, id * 2) AS k",
        s"id AS l$i",
        s"cast(id AS tinyint) AS t$i",
        s"cast(id AS smallint) AS sm$i",
        s"id % 2 = 0 AS bo$i",
        s"cast(id AS float) / 3 AS f$i",
        s"cast(id AS double) / 3 AS do$i",
        s"cast(id AS decimal(10,2)) AS d1$i",
        s"cast(id AS decimal(38,18)) / 3 AS d2$i",
        s"concat('value ', id) AS s$i",
        s"cast(concat('b', id) AS binary) AS bi$i",
        s"date_add(date'2020-01-01', cast(id AS int)) AS da$i",
        s"timestamp_seconds(id) AS ts$i",
        s"cast(timestamp_seconds(id) AS timestamp_ntz) AS nt$i",
        s"make_interval(0, 0, 0, id) AS ci$i",
        s"make_dt_interval(id) AS di$i",
        s"make_ym_interval(cast(id AS int)) AS yi$i",
        s"array(id, null) AS a$i",
        s"map('x', id, 'y', null) AS m$i",
        s"struct(id, concat('s', id) AS t, array(id) AS u) AS st$i",
        s"null AS v$i",
        s"if(id % 2 = 0, null, concat('n', id)) AS n$i")
    val joined = fullJoin("k")(wide(0), wide(1), wide(2).withColumn("k", col("k") + 2))
    for (mode <- Seq("CODEGEN_ONLY", "NO_CODEGEN")) withClue(mode) {
      withSQLConf(
        "spark.sql.codegen.factoryMode" -> mode,
        "spark.sql.codegen.wholeStage" -> (mode == "CODEGEN_ONLY").toString) {
        checkJoin(again(joined))
      }
    }
  }

  test("code generation switched off") {
    withSQLConf(
      "spark.sql.codegen.factoryMode" -> "NO_CODEGEN",
      "spark.sql.codegen.wholeStage" -> "false") {
      withAdaptive {
        checkFullJoin("k")(inputs(3): _*)
        checkJoin(
          multiJoin(
            inputs(3),
            Seq("k"),
            roles = Seq("optional", "required", "excluded"),
            indicator = "i"))
      }
    }
  }

  test("the limits of generated code: many columns", Slow) {
    def wide(i: Int) =
      input(i).select(col("k") +: (0 until 150).map(c => (col("k") + c).as(s"c${i}_$c")): _*)
    val joined = fullJoin("k")(wide(0), wide(1), wide(2))
    checkJoin(
      joined.selectExpr(
        "k",
        s"xxhash64(${joined.columns.tail.map(c => s"`$c`").mkString(", ")})",
        "c2_149"))
    checkJoin(joined)
  }

  test("inputs that are not deterministic") {
    val df = input(0).withColumn("n", monotonically_increasing_id()).withColumn("r", rand(7))
    checkFullJoin("k")(df, input(1), df.where("r > 0.5"))
    checkJoin(fullJoin("k")(df, input(1)).where("r > 0.5 OR r IS NULL").select("k", "n"))
  }
}
