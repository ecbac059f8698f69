package io.github.skewext.rewrite

import scala.collection.mutable

import io.github.skewext.internal.BuildInfo
import io.github.skewext.join.MultiFullJoin
import io.github.skewext.platform.SkewConf
import io.github.skewext.rewrite.RewriteReason.{OuterReference => _, _}

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases
import org.apache.spark.sql.catalyst.expressions.{Coalesce, EqualTo, OuterReference, PythonUDF}
import org.apache.spark.sql.catalyst.plans.FullOuter
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Join, JoinHint, LogicalPlan}
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.functions.{broadcast, col, expr, lit, udf, when}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.{SparkShims, TestShims}
import org.apache.spark.sql.types.StringType

/** Joins that are left to Spark, and the reasons. */
class RewriteReasonSuite extends RewriteTest {

  private val ab = "t0 a FULL JOIN t1 b ON a.k = b.k"
  private val wholeKey = "coalesce(a.k, b.k) = c.k"

  private def chain(condition: String, from: String = ab, third: String = "t2 c"): String =
    s"SELECT a.k, b.k, c.k, v0, v1, v2 FROM $from FULL JOIN $third ON $condition"

  /** A query with a column `e` that is computed between two joins. */
  private def between(e: String, where: String = ""): String =
    s"""SELECT k, e, v2 FROM (SELECT coalesce(a.k, b.k) AS k, $e AS e FROM $ab $where)
       |FULL JOIN t2 USING (k)""".stripMargin

  private val shown = mutable.Set.empty[RewriteReason]

  override protected def checkLeft(query: DataFrame, reason: RewriteReason): DataFrame = {
    shown += reason
    super.checkLeft(query, reason)
  }

  private def checkLeft(plan: LogicalPlan, reason: RewriteReason): Unit = {
    shown += reason
    val left = RewriteJoinChains.withReasons(EliminateSubqueryAliases(plan))
    assert(!left.exists(_.isInstanceOf[MultiFullJoin]), left)
    val given = left.collect { case join: Join => RewriteReason.of(join) }.flatten
    assert(given.map(_.reason).contains(reason), left)
  }

  test("does not rewrite joins on the key of only some inputs", Slow) {
    withTempView("one", "two", "three") {
      table("k, a", "('key1', 1), ('key2', 2)").createOrReplaceTempView("one")
      table("k, b", "('key3', 3)").createOrReplaceTempView("two")
      table("k, c", "('key3', 4)").createOrReplaceTempView("three")
      val first =
        "SELECT * FROM one FULL JOIN two ON one.k = two.k FULL JOIN three ON one.k = three.k"
      assert(checkLeft(first, PartialKey).count() === 4)
    }
    checkLeft(chain("b.k = c.k"), PartialKey)
    // Three tables are one join. The fourth is joined by another one, on the keys of two of them.
    val four = checkRewritten(
      s"""SELECT v0, v1, v2, v3 FROM $ab FULL JOIN t2 c ON $wholeKey
         |FULL JOIN t3 d ON coalesce(c.k, a.k) = d.k""".stripMargin,
      3)
    assert(reasons(four).map(_.reason) === Seq(PartialKey))
    assert(reasons(four).head.text.contains("coalesce"))
  }

  test("does not rewrite joins with conditions other than equal keys", Slow) {
    checkLeft(chain(s"$wholeKey AND a.n0 < c.n2"), ResidualCondition)
    checkLeft(chain(s"$wholeKey AND c.n2 > 20"), ResidualCondition)
    checkLeft(chain("coalesce(a.k, b.k) <=> c.k"), NullSafeEquality)
    checkLeft(chain("coalesce(a.k, b.k) + 1 = c.k"), KeyExpression)
    // A row with a null key would match the key 3.
    checkLeft(chain("coalesce(a.k, b.k, 3) = c.k"), KeyExpression)
    checkLeft(chain("coalesce(a.l, b.l) = c.l"), DifferentKeys)
    checkLeft(chain(wholeKey, s"$ab AND a.l = b.l"), DifferentKeys)
    checkLeft(chain("cast(coalesce(a.k, b.k) AS tinyint) = cast(c.k AS tinyint)"), LossyCast)
    checkLeft(
      chain(
        "coalesce(a.k, b.k) = c.k",
        """(SELECT array(k) AS k, v0 FROM t0) a
          |FULL JOIN (SELECT array(n1) AS k, v1 FROM t1) b ON a.k = b.k""".stripMargin,
        "(SELECT array(k) AS k, v2 FROM t2) c"),
      KeyType)
    checkLeft("SELECT a.k, v1, v2 FROM t0 a, t1 b, t2 c WHERE a.n0 < 2 AND b.n1 > 11", NoCondition)
    checkLeft("SELECT a.k, v0 FROM t0 a LEFT SEMI JOIN t1 b ON a.k = b.k", JoinType)
  }

  test("does not rewrite joins if an expression between them cannot move up") {
    checkLeft(between("rand()").replace(" e,", " e IS NULL,"), NonDeterministic)
    checkLeft(between("(SELECT max(n3) FROM t3)"), Subquery)
    checkLeft(between("v0", "WHERE v0 IS NULL OR v1 IS NOT NULL"), FilterBetween)
    checkLeft(
      s"""SELECT k, e, v2 FROM (SELECT k, concat(e, ' ', e) AS e FROM (
         |  SELECT coalesce(a.k, b.k) AS k,
         |    concat_ws(' ', upper(v0), upper(v1), lower(v0), lower(v1)) AS e FROM $ab
         |)) FULL JOIN t2 USING (k)""".stripMargin,
      RepeatedExpression)
    val frames =
      Seq(table("k, v", "(1, 'a')"), table("k, w", "(1, 'b')"), table("k, x", "(1, 'c')"))
    val batched = 100
    val python =
      TestShims.column(
        PythonUDF("f", null, StringType, Seq(SparkShims.expression(col("v"))), batched, true))
    val pair = frames(0).join(frames(1), Seq("k"), "full")
    checkLeft(
      pair.withColumn("p", python).join(frames(2), Seq("k"), "full").queryExecution.analyzed,
      SlowExpression)
    // Above all joins, the function is called for the same rows as before.
    val above = pair.join(frames(2), Seq("k"), "full").withColumn("p", python)
    assert(
      RewriteJoinChains
        .withReasons(EliminateSubqueryAliases(above.queryExecution.analyzed))
        .exists(_.isInstanceOf[MultiFullJoin]))
  }

  test("a slow expression between joins is not evaluated for each row of the whole result", Slow) {
    val calls = spark.sparkContext.longAccumulator
    val counted = udf { (x: Long) =>
      calls.add(1)
      x
    }
    val a = spark.range(20).select(col("id").as("k"), col("id").as("x"))
    val b = spark.range(10, 30).toDF("k")
    val c = spark.range(200).select((col("id") % 20).as("k"), col("id").as("z"))
    val pair = a.join(b, Seq("k"), "full")
    val computed = pair.withColumn("y", counted(col("x")))
    for (df <- Seq(computed.join(c, Seq("k"), "full"), c.join(computed, Seq("k"), "left"))) {
      withSQLConf(SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key -> "-1") {
        checkLeft(df, SlowExpression)
      }
      calls.reset()
      df.collect()
      assert(calls.value <= 20)
    }
    for (e <- Seq(
        "x RLIKE '^1+$'",
        "regexp_extract(x, '([0-9])')",
        "from_json(concat('[', x, ']'), 'array<int>')",
        "transform(array(x), e -> e + 1)",
        "sha2(string(x), 256)"))
      checkLeft(pair.withColumn("y", expr(e)).join(c, Seq("k"), "full"), SlowExpression)
    // Cheap ones move above all joins, where a slow one is evaluated for each row anyway.
    for (e <- Seq("x + 1", "base64(cast(x AS binary))"))
      checkRewritten(pair.withColumn("y", expr(e)).join(c, Seq("k"), "full"), 3)
    checkRewritten(pair.join(c, Seq("k"), "full").withColumn("y", counted(col("x"))), 3)
    checkRewritten(
      a.withColumn("y", counted(col("x"))).join(b, Seq("k"), "full").join(c, Seq("k"), "full"),
      3)
    // Nothing evaluates columns of an excluded input.
    checkRewritten(c.join(computed, Seq("k"), "left_anti"), 3)
  }

  test("expressions of a chain do not grow with each join") {
    val scored = spark.table("t0").select(col("k"), lit(0L).as("score"))
    val df = (1 to 7).foldLeft(scored) { (rows, i) =>
      val (table, score) = (spark.table(s"t$i").select(col("k"), col(s"n$i")), col("score"))
      rows
        .join(table, Seq("k"), "full")
        .withColumn("score", when(col(s"n$i").isNull, score).otherwise(score + col(s"n$i")))
        .drop(s"n$i")
    }
    val sizes = again(df).queryExecution.optimizedPlan.collect { case node =>
      node.expressions.map(_.collect { case e => e }.size)
    }
    assert(sizes.flatten.max < 100)
  }

  test("does not rewrite joins if hints or settings exclude them", Slow) {
    checkLeft(chain(wholeKey).replace("SELECT", "SELECT /*+ SHUFFLE_HASH(c) */"), Hint)
    checkLeft(
      spark
        .table("t0")
        .join(broadcast(spark.table("t1")), Seq("k"), "full")
        .join(spark.table("t2"), Seq("k"), "full"),
      Hint)
    checkLeft(s"SELECT v0, v1 FROM $ab", TwoInputs)
    withSQLConf(SkewConf.MULTI_JOIN_REWRITE.key -> "false") {
      checkLeft(chain(wholeKey), SwitchedOff)
      // A join by name is not a rewrite.
      checkRewritten(fullJoin("k")(spark.table("t0"), spark.table("t1")), 2)
    }
    val inner = "SELECT a.k, v0, v1, v2 FROM t0 a JOIN t1 b ON a.k = b.k JOIN t2 c ON b.k = c.k"
    checkLeft(inner, NoShuffleSaved)
    checkLeft(chain(wholeKey).replace("FULL JOIN t2", "JOIN t2"), RolesDiffer)
  }

  test("does not rewrite joins that prune the partitions of a scan", Slow) {
    val query =
      """SELECT f.k, f.v, x.w, x.x FROM facts f
        |LEFT JOIN (SELECT k, b.w, c.x FROM b FULL JOIN c USING (k)) x ON f.k = x.k
        |JOIN days ON f.day = days.day WHERE days.name = 'day 3'""".stripMargin
    withTempPath { path =>
      withTempView("facts", "b", "c", "days") {
        def write(name: String, rows: Long, columns: String*)(partitions: String*): Unit = {
          val table = s"$path/$name"
          spark
            .range(0, rows, 1, 1)
            .selectExpr(columns: _*)
            .write
            .partitionBy(partitions: _*)
            .parquet(table)
          spark.read.parquet(table).createOrReplaceTempView(name)
        }
        write("facts", 300, "id % 150 AS k", "sha(string(id)) AS v", "id % 5 AS day")("day")
        write("b", 200, "id AS k", "sha(string(id)) AS w")()
        write("c", 200, "id + 50 AS k", "sha(string(id)) AS x")()
        write("days", 5, "id AS day", "'day ' || id AS name")()
        withSQLConf(SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key -> "3000") {
          assert(partitionsRead(leftToPruning(query)) === 1)
          // Without a filter on the days, Spark prunes no partition.
          checkRewritten(query.replace("days.name = 'day 3'", "true"), 3)
          withSQLConf(SQLConf.DYNAMIC_PARTITION_PRUNING_ENABLED.key -> "false") {
            assert(partitionsRead(checkRewritten(query, 3)) === 5)
          }
          // Without a broadcast, Spark would run the other side twice.
          withSQLConf(SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key -> "-1") {
            checkRewritten(query, 3)
            withSQLConf(SQLConf.DYNAMIC_PARTITION_PRUNING_REUSE_BROADCAST_ONLY.key -> "false") {
              leftToPruning(query)
            }
          }
        }
      }
    }
  }

  /** The join loses its reason when Spark pushes the filter of partitions through it. */
  private def leftToPruning(query: String): DataFrame = {
    shown += PartitionPruning
    val df = checkRewritten(query)
    val joins =
      RewriteJoinChains.withReasons(df.queryExecution.optimizedPlan).collect { case j: Join => j }
    assert(joins.flatMap(RewriteReason.of(_)).map(_.reason).contains(PartitionPruning))
    df
  }

  /** The number of partitions that the scan of the partitioned table reads. */
  private def partitionsRead(df: DataFrame): Long = {
    val scans = collect(df.queryExecution.executedPlan) {
      case scan: FileSourceScanExec if scan.relation.partitionSchema.nonEmpty => scan
    }
    assert(scans.size === 1)
    scans.head.metrics("numPartitions").value
  }

  test("does not rewrite streaming queries and queries with outer references") {
    def stream: DataFrame = spark.readStream.format("rate").load()
    checkLeft(
      stream
        .join(stream, Seq("value"), "full")
        .join(stream, Seq("value"), "full")
        .queryExecution
        .analyzed,
      Streaming)
    val Seq(a, b, c, o) = Seq.fill(4)(table("k", "(1)").queryExecution.analyzed)
    def key(plan: LogicalPlan) = plan.output.head
    val outer = Filter(EqualTo(key(b), OuterReference(key(o))), b)
    def full(left: LogicalPlan, right: LogicalPlan, condition: EqualTo): LogicalPlan =
      Join(left, right, FullOuter, Some(condition), JoinHint.NONE)
    val pair = full(a, outer, EqualTo(key(a), key(b)))
    checkLeft(
      full(pair, c, EqualTo(Coalesce(Seq(key(a), key(b))), key(c))),
      RewriteReason.OuterReference)
  }

  // Spark 4 gives other ids to the table in the subquery, and so does not confuse the tables.
  private def isMistaken: Boolean = BuildInfo.sparkLine == "3.5"

  test("does not rewrite joins with a correlated subquery over the input's own table") {
    withTempView("t") {
      spark
        .sql("SELECT CAST(x AS string) AS k FROM VALUES (1, 2), (null, 3), (4, 5) AS rows(x, y)")
        .coalesce(1)
        .createOrReplaceTempView("t")
      val own = "SELECT r.k AS k FROM (SELECT c.k AS k FROM t AS c) AS r"
      def full(condition: String) =
        spark.sql(
          s"SELECT b.k AS k FROM t AS a FULL JOIN ($own WHERE $condition) AS b USING (k) " +
            "FULL JOIN (SELECT string(id) AS k FROM range(3)) AS c USING (k)")
      // Without excluded rules, literal rows become a relation with the ids of the query's columns.
      withSQLConf(SQLConf.OPTIMIZER_EXCLUDED_RULES.key -> "") {
        val ownTable = full("NOT EXISTS (SELECT 1 FROM t s WHERE r.k = s.k)")
        if (isMistaken) checkLeft(ownTable, SharedSubquery) else checkSame(ownTable)
        // An uncorrelated subquery, and one over another table.
        for (other <- Seq(
            "EXISTS (SELECT 1 FROM t s WHERE s.k = '4')",
            "NOT EXISTS (SELECT 1 FROM range(3) WHERE r.k = id)")) {
          val df = full(other)
          checkSame(df)
          val plan = df.queryExecution.optimizedPlan
          assert(plan.exists(_.isInstanceOf[MultiFullJoin]), s"$other ${reasons(df)} $plan")
        }
      }
    }
  }

  testOfAll("these tests show every reason") {
    // Only v2 catalogs have tables with such partitions, see `StoragePartitionsSuite`.
    val elsewhere = StoragePartitions +: (if (isMistaken) Nil else Seq(SharedSubquery))
    assert(RewriteReason.all.filterNot(shown.contains) === elsewhere)
    assert(RewriteReason.all.map(_.text).distinct.size === RewriteReason.all.size)
  }
}
