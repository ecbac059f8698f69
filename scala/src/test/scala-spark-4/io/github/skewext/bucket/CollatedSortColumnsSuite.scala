package io.github.skewext.bucket

/** Sort columns whose collation may be newer than the files. */
class CollatedSortColumnsSuite extends SortedBucketTest {

  test("files in the order of another collation are sorted, and merged by the columns before") {
    withTable("t") {
      spark.sql(
        "CREATE TABLE t(k INT, s STRING) USING parquet CLUSTERED BY (k) SORTED BY (k, s) INTO 2 BUCKETS")
      for (rows <- Seq("(1, 'a'), (1, 'B'), (2, 'c')", "(1, 'A'), (2, 'b')"))
        spark.sql(s"INSERT INTO t SELECT /*+ COALESCE(1) */ * FROM VALUES $rows")
      def ranked = spark.sql("SELECT *, rank() OVER (PARTITION BY k ORDER BY s) AS n FROM t")
      checkMerged(ranked, 1)
      spark.sql("ALTER TABLE t ALTER COLUMN s TYPE STRING COLLATE UTF8_LCASE")
      checkNotMerged(ranked, SortedFileMergeReason.OtherOrder)
      checkMerged(spark.sql("SELECT k, s, count(*) OVER (PARTITION BY k) AS n FROM t"), 1)
    }
  }
}
