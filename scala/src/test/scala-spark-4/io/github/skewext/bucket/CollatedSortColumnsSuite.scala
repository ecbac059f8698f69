package io.github.skewext.bucket

/** Sort columns whose collation may be newer than the files. */
class CollatedSortColumnsSuite extends SortedBucketTest {

  for ((from, to) <- Seq("UTF8_BINARY" -> "UTF8_LCASE", "UTF8_LCASE" -> "UTF8_BINARY"))
    test(s"files in the order of $from are sorted by $to, and in the order of the columns before") {
      withTable("t") {
        spark.sql(
          s"CREATE TABLE t(k INT, s STRING COLLATE $from) USING parquet " +
            "CLUSTERED BY (k) SORTED BY (k, s) INTO 2 BUCKETS")
        spark.sql(
          "INSERT INTO t SELECT /*+ COALESCE(1) */ * FROM VALUES " +
            "(1, 'a'), (1, 'B'), (2, 'c'), (1, 'A'), (2, 'b')")
        spark.sql(s"ALTER TABLE t ALTER COLUMN s TYPE STRING COLLATE $to")
        checkSorted(
          spark.sql("SELECT *, rank() OVER (PARTITION BY k ORDER BY s) AS n FROM t"),
          FileOrderReason.OtherOrder)
        checkInFileOrder(spark.sql("SELECT k, s, count(*) OVER (PARTITION BY k) AS n FROM t"), 1)
      }
    }

  test("the order of a bucket column of strings is used") {
    withTable("t") {
      spark.sql(
        "CREATE TABLE t(k STRING, s STRING) USING parquet CLUSTERED BY (k) SORTED BY (k, s) INTO 2 BUCKETS")
      spark.sql(
        "INSERT INTO t SELECT /*+ COALESCE(1) */ * FROM VALUES ('1', 'a'), ('2', 'c'), ('1', 'A')")
      checkInFileOrder(spark.sql("SELECT k, s, count(*) OVER (PARTITION BY k) AS n FROM t"), 1)
    }
  }
}
