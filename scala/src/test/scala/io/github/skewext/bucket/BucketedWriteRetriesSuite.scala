package io.github.skewext.bucket

import org.apache.spark.sql.skewext.RetriedTasks

import org.apache.hadoop.mapreduce.TaskAttemptContext

import org.apache.spark.internal.io.FileCommitProtocol.TaskCommitMessage
import org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol
import org.apache.spark.sql.functions._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.{SparkConf, TaskContext}

/** Tasks of a write that fail, and are run again. */
class BucketedWriteRetriesSuite extends SortedBucketTest with RetriedTasks {

  override protected def sparkConf: SparkConf =
    super.sparkConf
      .set(SQLConf.FILE_COMMIT_PROTOCOL_CLASS.key, classOf[FailsAtFirst].getName)

  test("one file a bucket, although each task's first attempt fails", Slow) {
    withTable("t") {
      val failing = udf { (id: Long) =>
        if (id % 50 == 7 && TaskContext.get().attemptNumber() == 0) sys.error("a first attempt")
        id
      }
      val rows = spark.range(0, 100, 1, 2).selectExpr("id % 17 AS k", "id % 2 AS p", "id")
      val data = rows.withColumn("v", failing(col("id")))
      for (partitionBy <- Seq(Nil, Seq("p"))) {
        FailsAtFirst.failed = false
        write(data, "t", Seq("k"), buckets = 2, mode = "overwrite", partitionBy = partitionBy)
        assert(FailsAtFirst.failed)
        val appended =
          write(data, "t", Seq("k"), buckets = 2, mode = "append", partitionBy = partitionBy)
        assert(appended.isKnown && appended.buckets.map(_.rows).sum === 100)
        assert(filesPerBucket("t").values.toSet === Set(2))
        val written = spark.table("t").select("k", "p", "id", "v").collect()
        val expected = rows.withColumn("v", col("id"))
        assertSameRows(
          written.toSeq,
          expected.union(expected).collect().toSeq,
          "what was written twice")
      }
    }
  }
}

/** Tasks fail when they have written their files, in their first attempt. */
class FailsAtFirst(jobId: String, path: String, overwritesPartitions: Boolean)
    extends SQLHadoopMapReduceCommitProtocol(jobId, path, overwritesPartitions) {

  override def commitTask(taskContext: TaskAttemptContext): TaskCommitMessage = {
    if (TaskContext.get().attemptNumber() == 0) {
      FailsAtFirst.failed = true
      sys.error("a first attempt")
    }
    super.commitTask(taskContext)
  }
}

object FailsAtFirst {
  @volatile var failed = false
}
