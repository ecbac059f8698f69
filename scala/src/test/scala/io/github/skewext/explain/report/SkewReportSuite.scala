package io.github.skewext.explain.report

import io.github.skewext.{Joins, MultiJoinTest}
import org.json4s._
import org.json4s.jackson.JsonMethods
import org.scalatest.time.SpanSugar._

import org.apache.spark.scheduler.{SparkListener, SparkListenerStageCompleted}
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike
import org.apache.spark.sql.functions._
import org.apache.spark.sql.{AnalysisException, DataFrame, Row}

class SkewReportSuite extends MultiJoinTest {

  private implicit val formats: Formats = DefaultFormats

  private val Partitions = 11

  private def report(on: Seq[String], withBytes: Boolean = false)(inputs: DataFrame*): SkewReport =
    SkewReport.of(
      Joins.sessionOf(inputs),
      inputs,
      inputs.map(_ => on),
      Some(Partitions),
      0.001,
      withBytes)

  /** The hot keys: their values, and the bounds of their rows in each input. */
  private def hotKeys(report: SkewReport): Seq[(Row, Seq[Long], Seq[Long])] =
    report.frame.where("key IS NOT NULL").collect().toSeq.map { r =>
      (r.getStruct(0), r.getSeq[Long](2), r.getSeq[Long](3))
    }

  private def figures(report: SkewReport): JValue = JsonMethods.parse(report.figures)

  private def input(report: SkewReport, i: Int): JValue = (figures(report) \ "inputs")(i)

  private def longs(value: JValue): Seq[Long] = value.extract[Seq[Long]]

  /** Where Spark's own shuffle sends the rows. */
  private def shuffled(df: DataFrame, on: String*): Seq[Long] = {
    val rows = df
      .repartition(Partitions, on.map(col): _*)
      .groupBy(spark_partition_id().as("p"))
      .count()
      .collect()
      .map(r => r.getInt(0) -> r.getLong(1))
      .toMap
    (0 until Partitions).map(rows.getOrElse(_, 0L))
  }

  private def checkExact(df: DataFrame, on: String*): Unit = {
    val seen = report(on)(df)
    val figures = input(seen, 0)
    val all = longs(figures \ "partition_rows").zip(longs(figures \ "partition_null_rows"))
    assert(all.map { case (rows, nulls) => rows + nulls } === shuffled(df, on: _*))
    val noNull = on.map(col(_).isNotNull).reduce(_ && _)
    assert(all.map(_._2).sum === df.where(!noNull).count())
    // Grouping takes -0.0 for 0.0 and all NaNs for one, as joins do.
    val counted = df.where(noNull).groupBy(on.map(col): _*).count().collect().toSeq
    val found = hotKeys(seen)
    assertSameRows(
      found.map { case (key, least, _) => Row.fromSeq(key.toSeq :+ least.head) },
      counted,
      "a group-by")
    found.foreach { case (_, least, most) => assert(least === most) }
  }

  /** A key such that equal ones are equal in Scala, too. */
  private def plain(key: Any): Any = key match {
    case d: Double => if (d.isNaN) "NaN" else d + 0.0
    case f: Float => f.toDouble
    case bytes: Array[Byte] => bytes.toSeq
    case row: Row => row.toSeq.map(plain)
    case values: Seq[_] => values.map(plain)
    case other => other
  }

  test("counts, partitions and nulls are those of Spark, whatever the type of the key", Slow) {
    val ids = spark.range(0, 300, 1, 3).withColumn("n", col("id") % 10 * (col("id") % 3))
    val n = col("n")
    val typed = ids.select(
      when(n =!= 4, n).as("long"),
      when(n =!= 2, n.cast("string")).as("string"),
      when(n === 0, -0.0)
        .when(n === 1, Double.NaN)
        .when(n =!= 8, n / 2)
        .otherwise(0.0)
        .as("double"),
      (n / 3).cast("float").as("float"),
      n.cast("decimal(20, 2)").as("decimal"),
      date_add(lit("2024-01-01").cast("date"), n.cast("int")).as("date"),
      n.cast("string").cast("binary").as("binary"),
      struct(n, when(n =!= 3, n / 7).as("d")).as("struct"),
      array(n.cast("double"), lit(-0.0)).as("array"),
      lit(null).as("void"))
    typed.cache()
    try {
      val hashes = typed.columns.map(name => pmod(hash(col(name)), lit(Partitions)))
      val rows = typed.select(typed.columns.map(col) ++ hashes: _*).collect()
      // Compiling takes longer than looking at so few rows.
      withSQLConf("spark.sql.codegen.factoryMode" -> "NO_CODEGEN") {
        typed.columns.zipWithIndex.foreach { case (name, i) =>
          val seen = report(Seq(name))(typed)
          val partitions = rows.groupBy(_.getInt(typed.columns.length + i)).map { case (k, same) =>
            k -> same.length
          }
          val figures = input(seen, 0)
          val counted = longs(figures \ "partition_rows")
            .zip(longs(figures \ "partition_null_rows"))
            .map { case (rows, nulls) => rows + nulls }
          assert(counted === (0 until Partitions).map(partitions.getOrElse(_, 0)), name)
          val expected = rows.map(_.get(i)).filter(_ != null).groupBy(plain).map { case (k, same) =>
            k -> same.length
          }
          val found = hotKeys(seen).map { case (key, least, _) => plain(key.get(0)) -> least.head }
          assert(found.toMap === expected.toMap, name)
          assert(found.length === expected.size, name)
        }
      }
      checkExact(typed, "double", "string")
    } finally {
      typed.unpersist()
    }
  }

  test("a join: rows of hot keys on both sides and in the output") {
    val left =
      spark.range(0, 9000, 1, 4).select(when(col("id") % 3 === 0, 7).otherwise(col("id")).as("k"))
    val right = spark
      .range(0, 4000, 1, 3)
      .select(when(col("id") < 500, 7).otherwise(col("id")).cast("int").as("k"))
    val seen = report(Seq("k"))(left, right)
    val (_, least, most) = hotKeys(seen).find(_._1.getAs[Long]("k") == 7L).get
    assert(least.head <= 3001 && most.head >= 3001)
    assert(least(1) === 500)
    assert(most(1) === 500)
    val output = figures(seen) \ "output"
    val rows = left.join(right, "k").count()
    assert((output \ "hot_low").extract[Long] <= 3001L * 500)
    assert((output \ "hot_high").extract[Long] >= 3001L * 500)
    // Of the others only the number is known.
    assert(math.abs((output \ "rows").extract[Long] - rows) < rows / 100)
    assert((output \ "partition_rows").extract[Seq[Long]].max > rows * 9 / 10)
  }

  test("one job, in which nothing is shuffled") {
    val df = spark.range(0, 1000, 1, 4).select((col("id") % 7).as("k"), col("id").as("v"))
    assert(report(Seq("k"))(df).frame.queryExecution.executedPlan.collect {
      case e: ShuffleExchangeLike => e
    }.isEmpty)
    @volatile var stages = Seq.empty[(String, Int)]
    val listener = new SparkListener {
      override def onStageCompleted(done: SparkListenerStageCompleted): Unit = {
        stages :+= (done.stageInfo.name -> done.stageInfo.numTasks)
      }
    }
    sparkContext.addSparkListener(listener)
    try {
      report(Seq("k"))(df).frame.collect()
      // Stages are told about in their order, so that this one comes after all others.
      spark.range(0, 3, 1, 3).foreach(_ => ())
      eventually(timeout(20.seconds)) {
        assert(stages.map(_._2) === Seq(4, 3))
      }
      assert(stages.head._1 === "skew_report")
    } finally {
      sparkContext.removeSparkListener(listener)
    }
    // That of all tests.
    assert(sparkContext.getLocalProperty("callSite.short") === suiteName)
  }

  test("measures sizes on request") {
    val df = spark.range(0, 1000, 1, 4).select((col("id") % 7).as("k"), lit("x" * 100).as("v"))
    // Two columns of eight bytes with nulls in eight, and the length: 4 + 8 + 16 + 104.
    assert((input(report(Seq("k"), withBytes = true)(df), 0) \ "row_bytes").extract[Long] === 132)
    val estimated = (input(report(Seq("k"))(df), 0) \ "row_bytes").extract[Long]
    assert(estimated > 16 && estimated < 60)
  }

  test("empty inputs, without partitions too") {
    Seq(
      frame("k int")(),
      spark.createDataFrame(sparkContext.emptyRDD[Row], frame("k int")().schema),
      table("k", "(1)").where("k > 1")).foreach { empty =>
      val seen = report(Seq("k"))(empty)
      assert(hotKeys(seen).isEmpty)
      assert((input(seen, 0) \ "rows").extract[Long] === 0)
      val both = report(Seq("k"))(table("k", "(1), (1)"), empty)
      assert((figures(both) \ "output" \ "rows").extract[Long] === 0)
    }
  }

  test("keys are compared as in a join, which may return them in another type") {
    withSQLConf("spark.sql.ansi.enabled" -> "false") {
      val seen = report(Seq("k"))(table("k", "(1), (1), (2)"), table("k", "('1'), ('01'), ('x')"))
      val found = hotKeys(seen).map { case (key, least, _) => key.getInt(0) -> least(1) }
      assert(found.toMap === Map(1 -> 2L, 2 -> 0L))
      val truth = report(Seq("k"))(table("k", "(1), (0)"), table("k", "(true)"))
      assert(hotKeys(truth).map(_._2(1)).toSet === Set(0L, 1L))
    }
  }

  test("rejects columns that cannot be keys") {
    def fails(message: String)(body: => Any): Unit = {
      val error = intercept[AnalysisException](body)
      assert(error.getMessage.contains(message))
    }
    val df = table("k, m", "(1, map(1, 2))")
    fails("cannot be compared")(report(Seq("m"))(df))
    fails("cannot be compared")(report(Seq("i"))(df.selectExpr("make_interval(0, 1, 0, 1) AS i")))
    fails("no column 'x'; its columns are [k, m]")(report(Seq("x"))(df))
    fails("is ambiguous")(report(Seq("k"))(df.select("k", "k")))
    fails("cannot all be compared")(report(Seq("k"))(df, table("k", "(array(1))")))
    fails("list of key columns is empty")(report(Nil)(df))
  }
}
