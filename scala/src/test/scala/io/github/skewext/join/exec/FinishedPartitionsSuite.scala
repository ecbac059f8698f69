package io.github.skewext.join.exec

import io.github.skewext.implicits._
import io.github.skewext.join.exec.FinishedPartitionsSuite._
import io.github.skewext.{AsOf, MultiJoinTest}

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.MultiZipRDD

/** What a task holds: none of the partitions that it has finished, and inputs until it ends. */
class FinishedPartitionsSuite extends MultiJoinTest {

  private val numPartitions = 200

  private def table(name: String): DataFrame =
    spark.range(2000).select((col("id") % 500).as("k"), col("id").as(name))

  /** The bytes that the task has at its end, more than at its beginning. */
  private def kept(frame: DataFrame): Long = {
    assert(frame.queryExecution.toRdd.getNumPartitions === numPartitions)
    frame.queryExecution.toRdd
      .coalesce(1)
      .mapPartitions { rows =>
        assert(rows.hasNext)
        val before = usedMemory()
        rows.foreach(_ => ())
        Iterator(usedMemory() - before)
      }
      .collect()
      .head
  }

  test("only reads of a shuffle are opened late, and no inputs with memory of their own") {
    val latest = table("c").latest(Seq("k"), Seq(col("c")))
    val joined = table("a").multiFullJoin(Seq(table("b").where("rand() >= 0"), latest), Seq("k"))
    withSQLConf(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> "false") {
      val inputs = operator(joined).children
      assert(inputs.map(MultiZipRDD.isRead) === Seq(true, true, false), inputs)
    }
  }

  for ((name, frame) <- Seq[(String, () => DataFrame)](
      "join" -> (() => table("a").multiFullJoin(Seq(table("b"), table("c"), table("d")), Seq("k"))),
      "as-of join" -> (() =>
        table("a")
          .asOfJoin(Seq(AsOf.of(table("b"), "b"), AsOf.of(table("c"), "c")), Seq("k"), "a")),
      "latest rows" -> (() => table("a").latest(Seq("k"), Seq(col("a"))))))
    test(s"finished partitions leave no buffers in the task: $name") {
      withSQLConf(
        SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> "false",
        SQLConf.SHUFFLE_PARTITIONS.key -> numPartitions.toString) {
        val bytes = kept(frame())
        assert(bytes < (4L << 20))
      }
    }
}

private object FinishedPartitionsSuite {
  def usedMemory(): Long = {
    System.gc()
    Runtime.getRuntime.totalMemory() - Runtime.getRuntime.freeMemory()
  }
}
