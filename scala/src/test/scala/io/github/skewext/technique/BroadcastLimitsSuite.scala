package io.github.skewext.technique

import io.github.skewext.plan.TechniqueReason

import org.apache.spark.sql.{AnalysisException, DataFrame, Row}

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

  test("what is known to be too large is refused before anything runs") {
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

  test("what turns out to be too large is refused when the driver has built it") {
    withSQLConf(Limit -> "100") {
      joins.foreach { join =>
        val message = error(join.of(unknown).collect())
        assert(message.contains("has built a broadcast of") && message.contains(Limit), join)
      }
    }
    joins.foreach(join => assertStock(join.of(unknown), stockJoin(large, unknown, "k", join.how)))
  }

  test("in plans that are not adaptive what has no known size is refused") {
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
