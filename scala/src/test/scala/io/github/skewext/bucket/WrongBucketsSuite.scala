package io.github.skewext.bucket

import io.github.skewext.bucket.files.FileBuckets
import io.github.skewext.join.exec.MultiFullJoinExec
import org.apache.hadoop.fs.Path
import org.apache.logging.log4j.Level

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.functions.{broadcast, col}
import org.apache.spark.sql.internal.SQLConf

/** Tables over files that were written with other buckets than the table declares. */
class WrongBucketsSuite extends BucketScanTest {

  private def rows: DataFrame =
    spark.range(400).selectExpr("id % 20 AS k", "id % 20 AS v", "id AS n")

  private def locationOf(table: String): String =
    spark.sessionState.catalog
      .getTableMetadata(TableIdentifier(table))
      .location
      .toString

  /** A table `t` that declares buckets, over files of the table `w` that was written with others. */
  private def withDeclared(
      written: (Int, Seq[String]),
      declared: (Int, Seq[String]),
      format: String = "parquet")(body: => Unit): Unit = withTable("w", "t") {
    rows
      .coalesce(1)
      .write
      .format(format)
      .bucketBy(written._1, written._2.head, written._2.tail: _*)
      .sortBy("k")
      .saveAsTable("w")
    declare("t", declared, format)
    body
  }

  private def declare(table: String, declared: (Int, Seq[String]), format: String): Unit = sql(
    s"CREATE TABLE $table (k LONG, v LONG, n LONG) USING $format CLUSTERED BY " +
      s"(${declared._2.mkString(", ")}) SORTED BY (k) INTO ${declared._1} BUCKETS " +
      s"LOCATION '${locationOf("w")}'")

  private val kv = Seq("k", "v")

  private def lookUps: Seq[DataFrame] =
    (0 until 20).map(k => sql(s"SELECT * FROM t WHERE k = $k AND v = $k"))

  /** All rows are found, and no bucket is pruned, because of a file. */
  private def checkNotPruned(): Unit = for (df <- lookUps) {
    assert(checkAnswer(df).size === 20)
    assert(scans(df).head.optionalBucketSet.isEmpty)
    val scan = explained(df, "t")
    assert(scan.why.startsWith(s"${BucketReason.OtherBuckets.text} (part-"), scan.why)
    assert(scan.advice.contains(BucketReason.OtherBuckets.advice))
  }

  for {
    format <- Seq("parquet", "orc")
    (written, declared) <- Seq(
      (5, kv) -> ((3, kv)),
      (3, kv) -> ((5, kv)),
      (4, kv) -> ((8, kv)),
      (8, kv) -> ((4, kv)),
      (8, Seq("v", "k")) -> ((8, Seq("k", "n"))),
      (8, Seq("n", "k")) -> ((8, kv)))
  } test(
    s"$format files of $written, declared with $declared, lose no row",
    Slow("(8,List(k, v)), lose no row", "(8,List(k, n)), lose no row")) {
    withDeclared(written, declared, format) {
      if (declared._2 == kv) {
        checkNotPruned()
      } else {
        for (n <- 0 until 20) {
          val df = sql(s"SELECT * FROM t WHERE k = $n AND n = $n")
          assert(checkAnswer(df).size === 1 && scans(df).head.optionalBucketSet.isEmpty)
        }
      }
    }
  }

  test("files of the declared buckets at another location are pruned", Slow) {
    withDeclared((5, kv), (5, kv)) {
      for (df <- lookUps) {
        assert(checkAnswer(df).size === 20)
        assert(bucketsRead(df).size === 1)
        assert(explained(df, "t").why === "pruned by the filters")
      }
    }
  }

  test("a second write with other buckets is found beside the first one", Slow) {
    withDeclared((5, kv), (5, kv)) {
      lookUps.foreach(checkAnswer(_))
      // The file index is that of the first query.
      withTable("u") {
        declare("u", (3, kv), "parquet")
        rows.coalesce(1).write.insertInto("u")
      }
      sql("REFRESH TABLE t")
      for (df <- lookUps) {
        assert(checkAnswer(df).size === 40)
        assert(scans(df).head.optionalBucketSet.isEmpty)
      }
    }
  }

  test("the keys of a broadcast prune no bucket") {
    withDeclared((5, kv), (3, kv)) {
      val wanted = table("k, v", "(3L, 3L), (4L, 4L)")
      val df = spark.table("t").join(broadcast(wanted), kv)
      assert(checkAnswer(df).size === 40)
      assert(scans(df).head.optionalBucketSet.isEmpty)
    }
    // Spark prunes by filters on one column, but not by a join.
    withDeclared((5, Seq("k")), (3, Seq("k"))) {
      val df = spark.table("t").join(broadcast(table("k", "(3L), (4L)")), "k")
      assert(checkAnswer(df).size === 40)
    }
  }

  test("Spark's own pruning by one column stays, and is not checked", Slow) {
    withDeclared((5, Seq("k")), (3, Seq("k"))) {
      for (k <- 0 until 20) {
        val df = sql(s"SELECT * FROM t WHERE k = $k")
        checkAnswer(df)
        assert(scans(df).head.optionalBucketSet.isDefined)
      }
    }
  }

  test("a multi-way join shuffles such a table, and returns the right rows") {
    withDeclared((5, Seq("k")), (3, Seq("k"))) {
      val others = (1 to 2).map { i =>
        save(rows.select(col("k"), col("n").as(s"n$i")).where(s"n < ${40 * i}"), s"o$i", 3, "k")
      }
      try {
        withSQLConf(SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key -> "-1") {
          val df = fullJoin("k")(spark.table("t").drop("v") +: others: _*)
          val found = df.collect().toSeq
          assert(collect(df.queryExecution.executedPlan) { case j: MultiFullJoinExec =>
            j
          }.size === 1)
          withSQLConf(Off, SQLConf.BUCKETING_ENABLED.key -> "false") {
            val expected = again(df).collect().toSeq
            assertSameRows(found, expected, "the same query without buckets")
          }
          assert(exchanges(df).size === 1)
        }
      } finally others.indices.foreach(i => sql(s"DROP TABLE o${i + 1}"))
    }
  }

  test("the log names the file, once, also if its rows are merged or sliced") {
    withDeclared((5, Seq("k")), (3, Seq("k"))) {
      val appender = new LogAppender("a file of other buckets")
      withSQLConf(SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key -> "-1") {
        val df = spark.table("t").join(spark.table("t").select(col("k"), col("n").as("m")), "k")
        withLogAppender(appender, level = Some(Level.WARN)) {
          df.collect()
          again(df).collect()
        }
        // As stock Spark does.
        assertSameRows(df.collect().toSeq, rowsWhenOff(df), "the same query with skewext off")
      }
      val messages = appender.loggingEvents
        .map(_.getMessage.getFormattedMessage)
        .filter(_.contains("declared with 3 buckets by k, but its file"))
      assert(messages.size === 1 && messages.head.contains(".parquet"), messages)
    }
  }

  private def relationOf(table: String): HadoopFsRelation =
    spark
      .table(table)
      .queryExecution
      .analyzed
      .collectFirst { case r: LogicalRelation => r.relation }
      .get
      .asInstanceOf[HadoopFsRelation]

  private def listed(relation: HadoopFsRelation): Seq[FileBuckets.Listed] =
    relation.location.listFiles(Nil, Nil).flatMap(_.files).map { file =>
      FileBuckets.Listed(file.getPath, file.getLen, file.getModificationTime)
    }

  test("a check is remembered for a write, and each write has one") {
    withDeclared((5, kv), (5, kv)) {
      val relation = relationOf("t")
      val files = listed(relation)
      assert(files.map(_.write).distinct.size === 1)
      assert(FileBuckets.check(relation, files) === FileBuckets.Proven)
      val moved = files.map(f => f.copy(path = new Path("/nowhere", f.path.getName)))
      assert(FileBuckets.check(relation, moved) === FileBuckets.Proven)
      val others = (0 to 64).map { i =>
        val name = f"part-00000-00000000-0000-0000-0000-$i%012d_00001.c000.snappy.parquet"
        FileBuckets.Listed(new Path("/nowhere", name), 100, 0)
      }
      assert(others.map(_.write).distinct.size === 65)
      FileBuckets.check(relation, files ++ others) match {
        case FileBuckets.Unknown(why) => assert(why.contains("more than 64 writes"))
        case other => fail(s"$other")
      }
      // Reading fails, and is tried again.
      FileBuckets.check(relation, files ++ others.take(1)) match {
        case FileBuckets.Unknown(why) => assert(why.contains("reading them failed"))
        case other => fail(s"$other")
      }
    }
  }

  private def checkOf(table: String): FileBuckets.Check =
    FileBuckets.check(relationOf(table), listed(relationOf(table)))

  test("sorted files with a hot key, few keys, nulls and no rows are proven", Slow) {
    for ((keys, buckets, numRows) <- Seq(
        ("if(id < 390000, 7, id % 100)", 4, 400000),
        ("id % 2", 64, 1000),
        ("if(id % 2 = 0, null, id % 30)", 8, 1000))) withTable("h") {
      hashed(keys, buckets, numRows)
      assert(checkOf("h") === FileBuckets.Proven, keys)
    }
    withTable("h") {
      save(rows.where("n < 0"), "h", 4, "k", "v")
      assert(checkOf("h") === FileBuckets.Proven)
    }
  }

  private def hashed(keys: String, buckets: Int, numRows: Int): Unit = spark
    .range(0, numRows, 1, 1)
    .selectExpr(s"$keys AS k", "1L AS v")
    .write
    .bucketBy(buckets, "k", "v")
    .sortBy("k")
    .saveAsTable("h")

  test("two keys in files that are not read to the end prove nothing", Slow) {
    withTable("h") {
      hashed("id % 2", 64, 250000)
      checkOf("h") match {
        case FileBuckets.Unknown(why) => assert(why.contains("too few different keys"))
        case other => fail(s"$other")
      }
      val df = sql("SELECT count(*) FROM h WHERE k = 1 AND v = 1")
      checkAnswer(df)
      assert(scans(df).head.optionalBucketSet.isEmpty)
      assert(explained(df, "h").why.startsWith(BucketReason.UnknownBuckets.text))
    }
  }
}
