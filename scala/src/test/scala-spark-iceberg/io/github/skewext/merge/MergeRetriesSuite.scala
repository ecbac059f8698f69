package io.github.skewext.merge

import java.util.concurrent.atomic.AtomicInteger

import io.github.skewext.merge.MergeRetriesSuite._
import io.github.skewext.skew.SplitRetriesSuite.{TaskEnds, Watched, watched}

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.Row
import org.apache.spark.sql.functions._
import org.apache.spark.sql.skewext.{RetriedTasks, TestSessions, TestShuffles}

/** Rows without a key go where they went before when their map task runs again. */
class MergeRetriesSuite extends MergeTest with RetriedTasks {

  private val SourceTasks = 6

  for (stable <- Seq(true, false)) {
    test(
      s"map tasks of the source run again with ${if (stable) "the same" else "other"} values",
      Slow) {
      val id = col("id")
      val text = md5(id.cast("string").cast("binary")).as("txt")
      write(spark.range(60).select(id.as("k"), id.as("v"), text), "ice.db.target")
      val rows = spark
        .range(0, 900, 1, 4)
        .select(when(id % 10 === 0, id).as("k"), id.as("v"), text)
        .repartition(SourceTasks)
      val source = if (stable) rows else spark.createDataFrame(changing(rows.rdd), rows.schema)
      source.createOrReplaceTempView("source")
      spark.udf.register("watched", watched)
      for (mode <- Seq(CopyOnWrite, MergeOnRead)) {
        setMode("ice.db.target", mode)
        val ends = new TaskEnds
        spark.sparkContext.addSparkListener(ends)
        withSQLConf(
          TestShuffles.OtherRowsAreNotSeen,
          "spark.sql.adaptive.coalescePartitions.enabled" -> "false") {
          Watched.reset()
          Watched.once = Some { () =>
            generation.incrementAndGet()
            // The tasks of the join that run now read what was written before, the next ones do not.
            TestShuffles.writtenBy(SourceTasks).foreach(TestShuffles.loseLast)
          }
          try {
            restoring("ice.db.target") {
              runMerge("""MERGE INTO ice.db.target t USING source s ON t.k = s.k
                         |WHEN MATCHED THEN UPDATE SET txt = s.txt
                         |WHEN NOT MATCHED THEN
                         |INSERT (k, v, txt) VALUES (s.k, watched(1L, s.v), s.txt)""".stripMargin)
              TestSessions.drainEvents(spark)
              assert(ends.fetchFailures > 0)
              // Each row of the source once, and the rows of the target that it has no key of.
              val found = rowsOf("ice.db.target").map(_.getString(2)).sorted
              val all = spark.range(900).union(spark.range(0, 60).where("id % 10 > 0"))
              assert(found === all.select(text).collect().map(_.getString(0)).toSeq.sorted)
            }
          } finally {
            Watched.reset()
            spark.sparkContext.removeSparkListener(ends)
          }
        }
      }
    }
  }
}

object MergeRetriesSuite {

  private val generation = new AtomicInteger

  /** With other values each time. */
  private def changing(rows: RDD[Row]): RDD[Row] = rows.map { row =>
    Row(row.get(0), row.getLong(1) * 31 + generation.get * 1000003L, row.get(2))
  }
}
