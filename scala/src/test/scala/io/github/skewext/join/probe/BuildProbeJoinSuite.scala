package io.github.skewext.join.probe

import java.util.concurrent.{Callable, Executors}

import io.github.skewext.platform.SkewConf
import org.scalatest.concurrent.TimeLimits
import org.scalatest.time.{Seconds, Span}

import org.apache.spark.sql.functions.{col, count, lit}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.{Observation, Row}

/** The rows of joins of two sides, in all dimensions that decide how a task computes them. */
class BuildProbeJoinSuite extends BuildProbeTest with TimeLimits {

  private val types =
    Seq("INNER", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI", "EXISTS", "NOT EXISTS OR")

  private val keys = Seq(
    "a.k = b.k",
    "a.k = b.k AND a.s = b.s",
    "a.s = b.s AND a.k <=> b.k",
    "a.k + 1 = b.k - 1",
    "a.f = b.f",
    "a.s = b.s AND a.st = b.st")

  private val conditions = Seq(
    "",
    "a.w < b.w",
    "b.w IS NULL OR b.w > a.v",
    "a.w < 10 AND b.t > a.t",
    "exists(a.ar, x -> x < b.w)")

  // How the rows arrive.
  private val sources = Seq("batches", "columns of rows", "rows")

  // How a task computes them.
  private val memory = Seq(
    "table" -> Nil,
    "sorted" -> Seq(SkewConf.MULTI_JOIN_GROUPING.key -> "sort"),
    "sorted late" -> Seq(
      SkewConf.MULTI_JOIN_MAX_ROWS_IN_MEMORY.key -> "50",
      SkewConf.MULTI_JOIN_GROUP_ROWS_IN_MEMORY.key -> "2"),
    "few hash bits" -> Seq(SkewConf.MULTI_JOIN_HASH_BITS.key -> "3"))

  private val evaluation = Seq("compiled", "interpreted")

  private val orders = Seq("left is smaller", "right is smaller")

  private val cases = for {
    joinType <- types
    key <- keys
    condition <- conditions
    source <- sources
    (name, _) <- memory
    how <- evaluation
    order <- orders
  } yield (joinType, key, condition, source, name, how, order)

  test("rows are those of Spark's joins for each type, key, condition, source and memory") {
    // Each pair of a type and any other dimension.
    val chosen = types.flatMap { joinType =>
      covering(cases.filter(_._1 == joinType))
    } ++ some(if (testSlow) 120 else 20, cases)
    chosen.foreach { case given @ (joinType, key, condition, source, name, how, order) =>
      val settings = ofSource(source) ++ memory.toMap.apply(name) ++
        (if (how == "compiled") GeneratedCode else Interpreted)
      withClue(s"$given: ") {
        withSQLConf(settings: _*) {
          checkProbe(query(joinType, Seq(key, condition).filter(_.nonEmpty), order))
        }
      }
    }
  }

  private def ofSource(source: String): Seq[(String, String)] = Seq(
    SkewConf.SHUFFLE_ENABLED.key -> (source != "rows").toString,
    SQLConf.PARQUET_VECTORIZED_READER_ENABLED.key -> (source == "batches").toString)

  /** The query by SQL, above tables that its source reads by column. */
  private def query(joinType: String, conditions: Seq[String], order: String) = {
    val (a, b) = if (order == "left is smaller") ("small", "large") else ("large", "small")
    val on = conditions.map(c => s"($c)").mkString(" AND ")
    joinType match {
      case "EXISTS" => s"SELECT * FROM $a a WHERE v < 5 OR EXISTS (SELECT 1 FROM $b b WHERE $on)"
      case "NOT EXISTS OR" =>
        s"SELECT v, NOT EXISTS (SELECT 1 FROM $b b WHERE $on) OR w > 3 AS e FROM $a a"
      case "LEFT SEMI" | "LEFT ANTI" => s"SELECT * FROM $a a $joinType JOIN $b b ON $on"
      case _ => s"SELECT a.*, b.*, b.w + 1 AS more FROM $a a $joinType JOIN $b b ON $on"
    }
  }

  test("a side without rows", Slow) {
    for (joinType <- types; (a, b) <- Seq("none" -> "small", "small" -> "none", "none" -> "none")) {
      val on = "a.k = b.k"
      val exists = s"EXISTS (SELECT 1 FROM $b b WHERE $on)"
      val q = joinType match {
        case "EXISTS" => s"SELECT * FROM $a a WHERE v < 5 OR $exists"
        case "NOT EXISTS OR" => s"SELECT v, NOT $exists OR w > 3 AS e FROM $a a"
        case _ => s"SELECT * FROM $a a $joinType JOIN $b b ON $on"
      }
      withSQLConf(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> "false") {
        checkProbe(q)
      }
    }
  }

  test("observed rows are counted to the last one, though no row matches them") {
    for (how <- Seq("inner", "left_semi", "left_anti", "right");
      (large, small) <- Seq(0 -> 1, 1 -> 0)) {
      val counts = Seq.fill(2)(new Observation)
      val sides = counts.zip(Seq(large, small)).map { case (observation, order) =>
        val rows =
          if (order == 0) spark.range(1000).selectExpr("id % 100 AS k")
          else spark.range(1).toDF("k")
        rows.repartition(8, col("k")).observe(observation, count(lit(1)).as("n"))
      }
      val joined = sides.head.join(sides(1), Seq("k"), how)
      joined.collect()
      assert(probes(joined).size === 1)
      assert(counts.map(_.get("n")) === Seq(large, small).map(order => if (order == 0) 1000 else 1))
    }
  }

  test("a thread that a function starts reads joins of joins") {
    def rows(n: Int) = spark.range(n).selectExpr("id % 50 AS k", "id AS v")
    for ((name, settings) <- memory) withSQLConf(settings: _*) {
      withClue(s"$name: ") {
        val joined = rows(3000).join(rows(2000), "k").join(rows(60), "k")
        val sizes = joined.rdd.mapPartitions(BuildProbeJoinSuite.sizeInOtherThread).collect()
        assert(probes(joined).size === 2)
        assert(sizes.sum === joined.count())
      }
    }
  }

  test("a key with very many rows on both sides", Slow) {
    for (joinType <- types.take(6); (_, settings) <- memory;
      condition <- Seq("", "AND a.v < b.v")) {
      withSQLConf(settings: _*) {
        val output =
          if (joinType.startsWith("LEFT ")) "count(*), sum(a.v)" else "count(*), sum(b.v)"
        checkProbe(s"SELECT $output FROM hot a $joinType JOIN hot b ON a.h = b.h $condition")
      }
    }
  }

  test("rows of a hot key that have a match are not tested again") {
    // Each row matches almost all others, and one in a thousand matches none. Tests of all pairs take
    // half a minute.
    def side(rows: Int) = "(SELECT id % 2 AS h, if(id % 1000 = 7, null, id % 12000) AS v " +
      s"FROM range(0, $rows, 1, 1))"
    val (few, many) = (side(12000), side(24000))
    val cases = for {
      joinType <- Seq("LEFT SEMI", "LEFT ANTI", "EXISTS", "NOT EXISTS OR")
      on <- Seq("a.v <> b.v", "b.v BETWEEN a.v - 6000 AND a.v + 6000", "a.v < b.v + 6000")
      sides <- Seq(few -> many, many -> few)
      grouping <- Seq("hash", "sort")
    } yield (joinType, on, sides, grouping)
    covering(cases).foreach { case given @ (joinType, on, (a, b), grouping) =>
      val exists = s"EXISTS (SELECT 1 FROM $b b WHERE a.h = b.h AND $on)"
      val query = joinType match {
        case "EXISTS" => s"SELECT a.v FROM $a a WHERE v < 5 OR $exists"
        case "NOT EXISTS OR" => s"SELECT a.v, NOT $exists OR v > 3 AS e FROM $a a"
        case _ => s"SELECT a.v FROM $a a $joinType JOIN $b b ON a.h = b.h AND $on"
      }
      withClue(s"$given: ") {
        withSQLConf(SkewConf.MULTI_JOIN_GROUPING.key -> grouping) {
          val df = probe(query)
          val rows = failAfter(Span(15, Seconds))(df.collect().toSeq)
          assert(probes(df).size === 1)
          assertSameRows(rows, rowsWhenOff(df), "the same query with skewext off")
        }
      }
    }
  }

  test("operators above that rely on an order sort by themselves") {
    val join = "SELECT a.k, a.v, b.w FROM large a JOIN small b ON a.k = b.k"
    checkProbe(s"SELECT k, sum(w) OVER (PARTITION BY k ORDER BY v, w) AS s FROM ($join)")
    checkProbe(s"SELECT /*+ MERGE(c) */ j.*, c.t FROM ($join) j JOIN small c ON j.k = c.k")
    withSQLConf(SQLConf.USE_OBJECT_HASH_AGG.key -> "false") {
      checkProbe(s"SELECT k, collect_list(v) FROM (SELECT * FROM ($join) ORDER BY v) GROUP BY k")
    }
    val sorted = probe(join).sortWithinPartitions("k").collect().map(_.getAs[Any]("k"))
    withSQLConf(Off) {
      val partitions = again(probe(join)).sortWithinPartitions("k").collect().map(_.getAs[Any]("k"))
      assert(sorted.toSeq === partitions.toSeq)
    }
  }

  test("joins of joins in one stage, with operators between", Slow) {
    val chain = "SELECT a.k, a.v + b.v AS v, c.w FROM large a JOIN small b ON a.k = b.k " +
      "LEFT JOIN small c ON a.k = c.k LEFT ANTI JOIN none d ON a.k = d.k"
    for (settings <- Seq(GeneratedCode, Interpreted)) {
      withSQLConf(settings: _*) {
        val df = probe(chain)
        checkProbe(chain)
        assert(probes(df).size === 3)
        assert(exchanges(df).size === 4)
        checkProbe(s"SELECT k, count(*), max(v), min(w) FROM ($chain) GROUP BY k")
        checkProbe(s"SELECT * FROM ($chain) LIMIT 100000")
      }
    }
    assert(probe(s"$chain LIMIT 7").collect().length === 7)
  }

  test("a condition that may fail is not evaluated for a row that has a match") {
    // The first row of each key matches, and all others would fail. The left side is smaller.
    val left = "(SELECT id AS k FROM range(0, 3, 1, 1)) a"
    val right = "(SELECT id % 3 AS k, if(id < 3, 1, 0) AS x FROM range(0, 300, 1, 1)) b"
    val query = s"SELECT k FROM $left WHERE k > 7 OR " +
      s"EXISTS (SELECT 1 FROM $right WHERE a.k = b.k AND 10 / b.x > a.k)"
    for ((name, settings) <- memory) withClue(s"$name: ") {
      withSQLConf(settings :+ (SQLConf.ANSI_ENABLED.key -> "true"): _*) {
        assert(spark.sql(query).collect().length === 3)
      }
    }
  }

  test("a subquery in the condition") {
    checkProbe(
      "SELECT * FROM large a LEFT JOIN small b ON a.k = b.k AND a.v < b.v + " +
        "(SELECT max(w) FROM small)")
  }
}

private object BuildProbeJoinSuite {

  def sizeInOtherThread(rows: Iterator[Row]): Iterator[Int] = {
    val threads = Executors.newSingleThreadExecutor()
    val size: Callable[Int] = () => rows.size
    try Iterator(threads.submit(size).get())
    finally threads.shutdown()
  }
}
