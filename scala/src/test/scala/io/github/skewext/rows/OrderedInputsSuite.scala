package io.github.skewext.rows

import io.github.skewext.MultiJoinTest
import io.github.skewext.platform.SkewConf

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.SortExec
import org.apache.spark.sql.expressions.Window
import org.apache.spark.sql.functions._

/** Inputs that come sorted by the key are merged, and the result is in that order. */
class OrderedInputsSuite extends MultiJoinTest {

  override protected def afterEach(): Unit = {
    spark.catalog.clearCache()
    super.afterEach()
  }

  // Spark's setting for scans of bucketed tables to tell how they are sorted.
  private val ScanOrder = "spark.sql.legacy.bucketedTableScan.outputOrdering" -> "true"

  private def input(i: Int): DataFrame = spark
    .range(0, 80, 1, 1)
    .select(
      when(col("id") % 9 =!= i, (col("id") * (i + 2)) % 23 - 5).as("k"),
      when(col("id") % 5 =!= i, (col("id") % 4).cast("string")).as("l"),
      (col("id") + 100 * i).as(s"v$i"))

  /** One sorted file a bucket, as the scan is only then taken to be sorted. */
  private def withSortedTables(keys: String*)(f: Seq[DataFrame] => Unit): Unit = {
    val names = Seq("s0", "s1", "s2")
    withTable(names: _*) {
      names.zipWithIndex.foreach { case (name, i) =>
        input(i).write.bucketBy(3, "k").sortBy(keys.head, keys.tail: _*).saveAsTable(name)
      }
      withSQLConf(ScanOrder)(f(names.map(spark.table)))
    }
  }

  private def sorts(df: DataFrame): Int =
    collect(df.queryExecution.executedPlan) { case s: SortExec => s }.size

  private def merges(df: DataFrame): Boolean = operator(df).outputOrdering.nonEmpty

  /** Whether the rows of every partition come in the order of `keys`, nulls first. */
  private def assertOrdered(
      df: DataFrame,
      keys: Seq[String])(implicit ord: Ordering[Long]): Unit = {
    val partitions = df.select(keys.map(col): _*).rdd.glom().collect()
    assert(partitions.map(_.length).sum > 0)
    partitions.foreach { rows =>
      val first = rows.map(r => if (r.isNullAt(0)) Long.MinValue else r.getLong(0)).toSeq
      assert(first === first.sorted)
    }
  }

  test("sorted tables are merged without exchanges, sorts and memory", Slow) {
    withSortedTables("k") { tables =>
      val joined = checkFullJoin("k")(tables: _*)
      assert(exchanges(joined).isEmpty && sorts(joined) === 0)
      assert(merges(joined))
      assert(operator(joined).metrics("peakMemory").value === 0)
      assertOrdered(joined, Seq("k"))
      // Order by the key, which is asked for above, is there already.
      val sorted = joined.sortWithinPartitions("k")
      checkJoin(sorted)
      assert(sorts(sorted) === 0)
      val window = joined.withColumn("n", count("*").over(Window.partitionBy("k")))
      checkJoin(window)
      assert(sorts(window) === 0 && exchanges(window).isEmpty)
      val other = joined.sortWithinPartitions("k", "v0")
      assert(sorts(other) === 1)
      assert(sorts(joined.sortWithinPartitions(col("k").desc)) === 1)
    }
  }

  test("roles, the indicator, and duplicate keys in sorted tables", Slow) {
    withSortedTables("k") { tables =>
      for (roles <- Seq(
          Seq("required", "optional", "excluded"),
          Seq("excluded", "optional", "required"),
          Seq("required", "required", "required"))) {
        val joined = multiJoin(tables, Seq("k"), roles = roles, indicator = "i")
        checkJoin(joined)
        assert(merges(joined))
      }
      withSQLConf(SkewConf.MULTI_JOIN_GROUP_ROWS_IN_MEMORY.key -> "1") {
        assert(merges(checkFullJoin("k")(tables: _*)))
      }
      assert(merges(checkFullJoin("k")(tables(0), tables(0), tables(1))))
    }
  }

  test("metrics of sorted inputs") {
    withSortedTables("k") { tables =>
      val joined = fullJoin("k")(tables: _*)
      val rows = joined.collect()
      def value(name: String) = operator(joined).metrics(name).value
      assert(value("numOutputRows") === rows.length)
      assert(value("numNullKeyRows") === rows.count(_.isNullAt(0)))
      assert(value("numGroups") === rows.filterNot(_.isNullAt(0)).map(_.get(0)).distinct.length)
      assert((0 until 3).map(i => value(s"numRowsOfInput$i")) === Seq(80, 80, 80))
    }
  }

  test("tables sorted by more than the key, by less, and otherwise", Slow) {
    withSortedTables("k", "l") { tables =>
      assert(merges(checkFullJoin("k")(tables: _*)))
      withSQLConf("spark.sql.adaptive.enabled" -> "false") {
        // Partitioned by a part of the key only: shuffled, and so no longer sorted.
        assert(!merges(checkFullJoin("k", "l")(tables: _*)))
        assert(!merges(checkFullJoin("k")(tables(0), tables(1), input(2))))
      }
    }
    withSortedTables("l") { tables =>
      assert(!merges(checkFullJoin("k")(tables: _*)))
    }
  }

  test("floats, with collisions of their bytes, and nested keys") {
    val a = table("k, a", "(-0.0d, 1), (0.0d, 2), (double('NaN'), 3), (-1d, 4), (null, 5)")
    val b = table("k, b", "(0.0d, 1), (-0.0d, 2), (double('NaN'), 3), (double('-infinity'), 4)")
    val (sortedA, sortedB) = (sortedBy(a, "k"), sortedBy(b, "k"))
    assert(merges(checkFullJoin("k")(sortedA, sortedB, sortedA)))
    def nested(df: DataFrame, v: String) = sortedBy(
      df.selectExpr("if(k IS NULL, null, array(k, null)) AS k", "struct(k) AS l", v),
      "k",
      "l")
    assert(merges(checkFullJoin("k", "l")(nested(a, "a"), nested(b, "b"))))
  }

  test("keys that differ late, or not in what is compared first", Slow) {
    val long = "'eight by' || "
    val keys = Seq(
      "k" -> Seq(
        "''",
        "'a'",
        s"$long''",
        s"$long'tes'",
        s"$long'tes and more'",
        s"$long'é'",
        "'é'"),
      "k" -> Seq("", "00", "0000", "FF", "7F", "0102030405060708", "01020304050607080900")
        .map(b => s"X'$b'"),
      "k" -> Seq("1.5BD", "-1.5BD", "99999.9BD", "0BD").map(v => s"cast($v AS decimal(9, 2))"),
      "k" -> Seq("1.5BD", "-1.5BD", "1e20BD", "0BD").map(v => s"cast($v AS decimal(38, 5))"),
      "k" -> Seq("1970-01-01", "1969-12-31", "0001-01-01", "9999-12-31").map(d => s"date'$d'"),
      "k, l" -> Seq("1, 'b'", "1, null", "null, 'a'", "1, 'a'", "0, 'z'", "null, null"),
      "k, l" -> Seq("true, 1L", "false, -1L", "true, null", "false, 9223372036854775807L"),
      "k" -> Seq("1, 'b', 'a'", "1, 'b', cast(null AS string)", "0, 'b', 'z'", "1, 'b', 'b'")
        .map(v => s"named_struct('a', $v)"),
      "k" -> Seq("-9223372036854775808L", "-1L", "0L", "9223372036854775807L"))
    withSQLConf("spark.sql.shuffle.partitions" -> "1") {
      for ((columns, values) <- some(5, keys)) withClue(s"$values: ") {
        // Some of the keys, one of them twice or three times, and one that is null.
        def input(i: Int) = {
          val nulls = columns.replaceAll("\\w+", "null")
          val some = values.zipWithIndex.collect { case (v, j) if j % 4 != i => v }
          val rows = some ++ Seq.fill(i)(some.head) :+ nulls
          sortedBy(
            table(
              s"$columns, v$i",
              rows.zipWithIndex.map { case (v, j) => s"($v, $j)" }.mkString(", ")),
            columns.split(", "): _*)
        }
        val joined = checkFullJoin(columns.split(", "): _*)((0 until 4).map(input): _*)
        assert(merges(joined))
        // Spark sorts the same rows, and they come as they did.
        val on = columns.split(", ").map(col)
        def rows(df: DataFrame) = df
          .select(on: _*)
          .collect()
          .toSeq
          .map(_.toSeq.map {
            case bytes: Array[Byte] => bytes.toSeq
            case value => value
          })
        val inOrder = rows(joined)
        assert(
          inOrder.distinct.size === (values :+ columns.replaceAll("\\w+", "null")).distinct.size)
        withSQLConf(Off)(assert(inOrder === rows(again(joined).sort(on: _*))))
      }
    }
  }

  test("a table that is not sorted as its metadata declares") {
    withTempPath { path =>
      withTable("plain", "unsorted", "s0") {
        val df = input(0).where("k IS NOT NULL").orderBy(col("k").desc).coalesce(1)
        df.write.bucketBy(3, "k").option("path", path.getPath).saveAsTable("plain")
        sql(s"""CREATE TABLE unsorted (k LONG, l STRING, v0 LONG) USING parquet
          CLUSTERED BY (k) SORTED BY (k) INTO 3 BUCKETS LOCATION '${path.toURI}'""")
        input(1).write.bucketBy(3, "k").sortBy("k").saveAsTable("s0")
        withSQLConf(ScanOrder) {
          def joined = fullJoin("k")(spark.table("unsorted"), spark.table("s0"))
          assert(merges(joined))
          val error = intercept[org.apache.spark.SparkException](joined.collect())
          assert(error.getMessage.contains(s"${ScanOrder._1} to false"))
        }
        assertSameRows(
          fullJoin("k")(spark.table("plain"), spark.table("s0")).collect().toSeq,
          rowsWhenOff(fullJoin("k")(spark.table("plain"), spark.table("s0"))),
          "Spark's join of the same files without that metadata")
      }
    }
  }

}
