package io.github.skewext.technique

import java.util.concurrent.{FutureTask, TimeUnit}

import org.apache.spark.sql.execution.adaptive.BroadcastQueryStageExec
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec
import org.apache.spark.sql.skewext.TestSessions
import org.apache.spark.sql.{AnalysisException, DataFrame, Row, functions}

/** Sides that are too large to broadcast: an error of the query, before anything else can go wrong. */
class BroadcastLimitsSuite extends TechniqueTest {

  private val Limit = "spark.skewext.skewJoin.maxBroadcastBytes"

  private def large = skewed(0, 100, hot = 2)

  private def small = skewed(30, 25, keys = 12)

  private def smallBytes = small.queryExecution.optimizedPlan.stats.sizeInBytes.toLong

  /** Of an RDD Spark knows no size; that it has a checkpoint makes it one that can be read twice. */
  private lazy val unknown =
    frame("k long, w int")((0 until 40).map(k => Row(k.toLong, 1)): _*).localCheckpoint()

  private case class Join(technique: String, how: String, options: Map[String, String]) {
    def of(right: DataFrame): DataFrame = skewJoin(large, right, "k", how, technique, options)
  }

  /** By each technique that broadcasts the right side: whole, with its unmatched rows, in chunks. */
  private val joins: Seq[Join] = Seq(
    Join("broadcast", "left", Map.empty),
    Join("broadcast", "full", Map("side" -> "right")),
    Join("broadcast_map", "full", Map("side" -> "right")),
    inChunks(2))

  private def inChunks(n: Int) =
    Join("iterative_broadcast", "full", Map("side" -> "right", "chunks" -> n.toString))

  private def error(body: => Any): String = intercept[AnalysisException](body).getMessage

  test("rejects a side that is known to be too large before anything runs") {
    withSQLConf(Limit -> "100") {
      joins.foreach { join =>
        val message = error(join.of(small))
        assert(message.contains(TechniqueReason.TooLarge.text) && message.contains(Limit), join)
      }
    }
    withSQLConf(Limit -> (smallBytes / 3).toString) {
      val message = error(inChunks(2).of(small))
      assert(message.contains("in 2 chunks exceeds"), message)
      // More chunks are smaller ones.
      inChunks(4).of(small)
    }
  }

  private val MaxResultSize = "spark.driver.maxResultSize"

  private def withMaxResultSize[T](bytes: Option[String])(body: => T): T =
    TestSessions.withContextConf(spark, MaxResultSize, bytes)(body)

  test("the limit is the setting, and no more than the driver takes of a result") {
    val gib = 1L << 30
    for {
      (set, ofResult, limit) <- Seq(
        (1000L, Some("2000"), 1000L),
        (2000L, Some("1000"), 1000L),
        (1000L, Some("1000"), 1000L),
        (1000L, Some("999"), 999L),
        (1000L, Some("1001"), 1000L),
        // No limit of Spark's.
        (3 * gib, Some("0"), 3 * gib),
        // Spark's default.
        (3 * gib, None, gib),
        (gib + 1, None, gib),
        (gib - 1, None, gib - 1))
    } withSQLConf(Limit -> set.toString) {
      withMaxResultSize(ofResult) {
        assert(BroadcastLimit.maxBytes(spark) === limit, s"$set, $ofResult")
      }
    }
  }

  test("an error names the limits that the size exceeds, and no other") {
    val (ours, ofDriver) = (s"raise $Limit", s"start the application with a larger $MaxResultSize")
    def check(limit: Long, ofResult: Long, cure: String)(message: String): Unit =
      withClue(s"$limit, $ofResult: $message") {
        assert(message.contains(cure))
        for (other <- Seq(ours, ofDriver) if !cure.contains(other)) assert(!message.contains(other))
      }
    val large = smallBytes * 10
    for ((limit, ofResult, cure) <- Seq(
        (100L, large, ours),
        (large, 100L, ofDriver),
        (100L, 100L, s"$ours, and $ofDriver"),
        (100L, 0L, ours))) {
      withSQLConf(Limit -> limit.toString)(withMaxResultSize(Some(ofResult.toString)) {
        for (join <- joins) check(limit, ofResult, cure)(error(join.of(small)))
      })
    }
    // The broadcast is larger than the result of the job that collects its rows.
    for (join <- joins.init) {
      val built = builtBytes(join.of(unknown))
      for ((limit, ofResult, cure) <- Seq(
          (built - 1, built, ours),
          (built, built - 1, ofDriver),
          (built - 1, built - 1, s"$ours, and $ofDriver"))) {
        withSQLConf(Limit -> limit.toString)(withMaxResultSize(Some(ofResult.toString)) {
          check(limit, ofResult, cure)(error(join.of(unknown).collect()))
        })
      }
    }
  }

  private def builtBytes(df: DataFrame): Long = {
    df.collect()
    val Seq(built) = collect(df.queryExecution.executedPlan) { case b: BroadcastQueryStageExec =>
      b.getRuntimeStatistics.sizeInBytes.toLong
    }
    built
  }

  test("more chunks are proposed up to their largest number, and the limit in any case") {
    def message(limit: Long, chunks: Int): String = {
      var told = ""
      withSQLConf(Limit -> limit.toString) {
        told = error(inChunks(chunks).of(small))
      }
      told
    }
    assert(message(smallBytes / 4 + 1, 2).contains("set the option chunks to 4, or raise"))
    withSQLConf(Limit -> (smallBytes / 4 + 1).toString)(inChunks(4).of(small))
    // Two thousand bytes in chunks of one.
    val rows = skewed(30, 100, keys = 12)
    assert(rows.queryExecution.optimizedPlan.stats.sizeInBytes > 1024)
    var few = ""
    withSQLConf(Limit -> "1") { few = error(inChunks(2).of(rows)) }
    assert(few.contains(s"raise $Limit") && !few.contains("the option chunks"), few)
  }

  test("a side as large as the limit is broadcast, one that is a byte larger is refused") {
    def accepts(join: Join): Unit = join.of(small)
    def refuses(join: Join): Unit = assert(error(join.of(small)).contains("(the right side"), join)
    val whole = joins.init
    withSQLConf(Limit -> smallBytes.toString)(whole.foreach(accepts))
    withSQLConf(Limit -> (smallBytes - 1).toString)(whole.foreach(refuses))
    withMaxResultSize(Some(smallBytes.toString))(whole.foreach(accepts))
    withMaxResultSize(Some((smallBytes - 1).toString))(whole.foreach(refuses))
    val ofChunk = (smallBytes + 1) / 2
    withSQLConf(Limit -> ofChunk.toString)(accepts(inChunks(2)))
    withSQLConf(Limit -> (ofChunk - 1).toString)(refuses(inChunks(2)))
  }

  test(
    "a broadcast that is as large as the limit when it is built, and one that is a byte larger",
    Slow) {
    for (join <- joins.init) {
      val built = builtBytes(join.of(unknown))
      withSQLConf(Limit -> built.toString)(join.of(unknown).collect())
      withSQLConf(Limit -> (built - 1).toString) {
        assert(error(join.of(unknown).collect()).contains("has built a broadcast of"), join)
      }
    }
  }

  test("sizes in words, and from which one on nothing is known") {
    val unknown = BigInt(Long.MaxValue / 2)
    assert(BroadcastLimit.isKnown(unknown - 1) && !BroadcastLimit.isKnown(unknown))
    assert(BroadcastLimit.size(unknown) === "of unknown size")
    assert(BroadcastLimit.size(1023) === "1023 B" && BroadcastLimit.size(1024) === "1.0 KiB")
    assert(BroadcastLimit.size(1 << 20) === "1.0 MiB" && BroadcastLimit.size(1 << 30) === "1.0 GiB")
  }

  test("rejects a side that is too large once the driver has built it", Slow) {
    withSQLConf(Limit -> "100") {
      joins.foreach { join =>
        val df = join.of(unknown)
        // All stages are done when the plan is executed again.
        for (_ <- 1 to 2) {
          val message = error(df.collect())
          assert(message.contains("has built a broadcast of") && message.contains(Limit), join)
        }
      }
    }
    joins.foreach(join => assertStock(join.of(unknown), stockJoin(large, unknown, "k", join.how)))
  }

  test(
    "a refused query does not wait for stages that it has left, when it is collected again",
    Slow) {
    val slow = functions.udf { (v: Long) =>
      Thread.sleep(50)
      v
    }
    val left = large
      .select(functions.col("k"), slow(functions.col("v0").cast("long")).as("v"))
      .repartition(2, functions.col("v"))
    withSQLConf(Limit -> "100") {
      val df = skewJoin(left, unknown, "k", "left", "broadcast")
      assert(error(df.collect()).contains("has built a broadcast of"))
      val again = new FutureTask(() => intercept[Exception](df.collect()))
      new Thread(again).start()
      again.get(60, TimeUnit.SECONDS)
    }
  }

  test("the limit does not apply to broadcasts that Spark or its hint chooses", Slow) {
    def checkAll(technique: String, how: String, right: DataFrame): Unit =
      for (adaptive <- Seq("true", "false")) {
        withSQLConf("spark.sql.adaptive.enabled" -> adaptive, Limit -> "100") {
          withClue(s"$technique, $how, adaptive $adaptive: ") {
            val df = skewJoin(large, right, "k", how, technique)
            assertStock(df, stockJoin(large, right, "k", how))
            assert(collect(df.queryExecution.executedPlan) { case j: BroadcastHashJoinExec =>
              j
            }.nonEmpty)
          }
        }
      }
    for (technique <- SkewTechniques.all.map(_.name)) {
      checkAll(technique, "left", functions.broadcast(unknown))
    }
    withSQLConf("spark.sql.autoBroadcastJoinThreshold" -> "100m") {
      for (technique <- Seq("none", "adaptive"); how <- Seq("inner", "left_anti")) {
        checkAll(technique, how, small)
      }
    }
  }

  test("rejects a side of unknown size in plans that are not adaptive") {
    withSQLConf("spark.sql.adaptive.enabled" -> "false") {
      joins.foreach(join => assert(error(join.of(unknown)).contains("of unknown size"), join))
      // What is known may be wrong: the join looks at what has been built.
      withSQLConf(Limit -> (smallBytes + 1).toString) {
        val message = error(joins(2).of(small).collect())
        assert(message.contains("has built a broadcast of"), message)
      }
    }
  }
}
