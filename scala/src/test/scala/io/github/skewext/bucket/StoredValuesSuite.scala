package io.github.skewext.bucket

import java.util.TimeZone

import org.apache.spark.sql.functions.broadcast

/** Files that do not have the values whose hash is their bucket. */
class StoredValuesSuite extends BucketScanTest {

  /** A table with the rows of `written` by its first two columns, which `k` and `x` select. */
  private def check(
      format: String,
      types: (String, String),
      written: (String, String),
      read: String,
      why: String): Unit = withTable("t") {
    sql(
      s"CREATE TABLE t (k ${types._1}, x ${types._2}, v INT) USING $format " +
        "CLUSTERED BY (k, x) INTO 64 BUCKETS")
    sql(s"INSERT INTO t VALUES (${written._1}, ${written._2}, 7)")
    val filtered = sql(s"SELECT * FROM t WHERE k = ${written._1} AND x = $read")
    val keys = table("k, x", s"(${written._1}, $read)")
    val joined = spark.table("t").join(broadcast(keys), Seq("k", "x"))
    for (df <- Seq(filtered, joined)) {
      assert(checkAnswer(df).size === 1, s"$format: $read")
      assert(scans(df).forall(_.optionalBucketSet.isEmpty))
    }
    assert(explained(filtered, "t").why.contains(why))
  }

  private val Format = "only Parquet and ORC"
  private val Type = "because of its type"

  test("CSV and JSON files have other spaces and fewer digits") {
    check("csv", "INT" -> "STRING", "1" -> "' anna'", "'anna'", Format)
    for (format <- Seq("csv", "json"))
      check(
        format,
        "INT" -> "TIMESTAMP",
        "1" -> "TIMESTAMP'2024-01-01 00:00:00.123456'",
        "TIMESTAMP'2024-01-01 00:00:00.123'",
        Format)
  }

  test("one bucket column of a CSV file, and keys of a join") {
    withTable("t") {
      sql("CREATE TABLE t (k STRING, v INT) USING csv CLUSTERED BY (k) INTO 64 BUCKETS")
      sql("INSERT INTO t VALUES (' anna', 7)")
      val df = spark.table("t").join(broadcast(table("k", "('anna')")), "k")
      assert(checkAnswer(df).size === 1)
    }
  }

  test("Parquet files with the milliseconds of timestamps") {
    withSQLConf("spark.sql.parquet.outputTimestampType" -> "TIMESTAMP_MILLIS") {
      check(
        "parquet",
        "INT" -> "TIMESTAMP",
        "1" -> "TIMESTAMP'2024-01-01 00:00:00.123456'",
        "TIMESTAMP'2024-01-01 00:00:00.123'",
        Type)
    }
  }

  test("ORC files with the local times of timestamps") {
    val zone = TimeZone.getDefault
    withTable("t") {
      sql("CREATE TABLE t (k INT, x TIMESTAMP) USING orc CLUSTERED BY (k, x) INTO 64 BUCKETS")
      sql("INSERT INTO t VALUES (1, TIMESTAMP'2024-01-01 00:00:00Z')")
      try {
        TimeZone.setDefault(TimeZone.getTimeZone("Asia/Tokyo"))
        val read = spark.table("t").selectExpr("cast(x AS long)").head().getLong(0)
        assert(read === 1704067200L - 9 * 3600 + zone.getOffset(1704067200000L) / 1000)
        val df = sql(s"SELECT * FROM t WHERE k = 1 AND x = timestamp_seconds($read)")
        assert(checkAnswer(df).size === 1)
      } finally {
        TimeZone.setDefault(zone)
      }
    }
  }

  test("dates that the Julian calendar does not have") {
    for ((format, conf) <- Seq(
        "orc" -> Nil,
        "parquet" -> Seq("spark.sql.parquet.datetimeRebaseModeInWrite" -> "LEGACY"))) {
      withSQLConf(conf: _*) {
        check(
          format,
          "INT" -> "DATE",
          "1" -> "DATE'1582-10-10'",
          "DATE'1582-10-15'",
          "do not bind every bucket column")
      }
    }
  }
}
