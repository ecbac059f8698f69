package io.github.skewext.bucket

import java.io.File
import java.net.URI

import io.github.skewext.bucket.ConcurrentAppendsSuite._
import org.apache.hadoop.fs.{FileStatus, Path, RawLocalFileSystem}
import org.apache.hadoop.mapreduce.TaskAttemptContext
import org.apache.hadoop.mapreduce.lib.output.{FileOutputCommitterFactory, NamedCommitterFactory}

import org.apache.spark.internal.io.FileCommitProtocol.TaskCommitMessage
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.execution.QueryExecutionException
import org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.RetriedTasks
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.{SparkConf, TaskContext}

/** Several writes to a table at the same time: no row is lost, or there is an error. */
class ConcurrentAppendsSuite extends SortedBucketTest with RetriedTasks {

  override protected def sparkConf: SparkConf =
    super.sparkConf.set("spark.hadoop.fs.hooked.impl", classOf[HookedFileSystem].getName)

  private def data(rows: Int, from: Int = 0): DataFrame =
    spark.range(from, from + rows, 1, 2).selectExpr("id % 37 AS k", "id AS v", "id % 3 AS p")

  private def append(rows: DataFrame, partitionBy: Seq[String]): WrittenBuckets =
    write(rows, "t", Seq("k"), buckets = 2, mode = "append", partitionBy = partitionBy)

  /** A table in a file system with hooks. */
  private def withHookedTable(partitionBy: Seq[String] = Nil)(body: File => Unit): Unit =
    withTable("t")(withTempDir { folder =>
      write(
        data(10),
        "t",
        Seq("k"),
        buckets = 2,
        partitionBy = partitionBy,
        options = Map("path" -> s"hooked://${folder.getCanonicalPath}"))
      try body(folder)
      finally HookedFileSystem.clear()
    })

  private def assertRows(of: DataFrame*): Unit =
    assertSameRows(
      spark.table("t").select("k", "v", "p").collect().toSeq,
      of.flatMap(_.collect().toSeq),
      "all that was appended")

  private def assertNothingStaged(folder: File): Unit = {
    val hidden = folder.list().filter(n => n.startsWith(".skewext") || n == "_temporary").toSeq
    assert(hidden === Nil)
  }

  private def checkConcurrentAppends(partitionBy: Seq[String]): Unit =
    withHookedTable(partitionBy) { folder =>
      var second: Option[WrittenBuckets] = None
      HookedFileSystem.onJobCommit(() => second = Some(append(data(50, from = 300), partitionBy)))
      val first = append(data(30, from = 100), partitionBy)
      assert(first.isKnown && first.buckets.map(_.rows).sum === 30)
      assert(second.exists(w => w.isKnown && w.buckets.map(_.rows).sum == 50))
      assertRows(data(10), data(30, from = 100), data(50, from = 300))
      assertNothingStaged(folder)
    }

  for (partitionBy <- Seq(Nil, Seq("p"))) {
    val of = if (partitionBy.isEmpty) "" else " of a partitioned table"
    test(
      s"an append that finishes while another one$of commits its job takes none of its rows",
      Slow(" of a partitioned table commits its job takes none of its rows")) {
      checkConcurrentAppends(partitionBy)
    }
  }

  test("a committer factory of the file system, which Spark uses for all formats but Parquet") {
    val factory = "mapreduce.outputcommitter.factory.scheme.hooked"
    withSQLConf(factory -> classOf[NamedCommitterFactory].getName) {
      checkConcurrentAppends(Nil)
      withHookedTable() { _ =>
        val parquet = spark.sessionState.catalog.getTableMetadata(TableIdentifier("t"))
        def isStaged(format: String): Boolean =
          StagedCommitter.options(spark, parquet.copy(provider = Some(format))).isDefined
        assert(isStaged("parquet") && !isStaged("orc") && !isStaged("json"))
        withSQLConf(factory -> classOf[FileOutputCommitterFactory].getName) {
          assert(isStaged("orc"))
        }
      }
    }
  }

  test("an INSERT of Spark's own that finishes while an append commits its job takes no row") {
    withHookedTable() { folder =>
      HookedFileSystem.onJobCommit(() => spark.sql("INSERT INTO t VALUES (7, 7, 7)"))
      assert(append(data(30, from = 100), Nil).buckets.map(_.rows).sum === 30)
      assert(HookedFileSystem.isDone)
      assertRows(data(10), data(30, from = 100), spark.sql("SELECT 7L, 7L, 7L"))
      assertNothingStaged(folder)
    }
  }

  test("an overwrite that finishes while an append commits its job makes the append fail") {
    withHookedTable() { _ =>
      HookedFileSystem.onJobCommit { () =>
        spark.sql("INSERT OVERWRITE t VALUES (7, 7, 7)")
      }
      intercept[Exception](append(data(30, from = 100), Nil))
      assert(HookedFileSystem.isDone)
      spark.catalog.refreshTable("t")
      assertRows(spark.sql("SELECT 7L, 7L, 7L"))
    }
  }

  test(
    "a task whose commit fails is run again, and a write that fails leaves nothing behind",
    Slow) {
    withHookedTable() { folder =>
      HookedFileSystem.onTaskCommit(() => sys.error("a first attempt"))
      assert(append(data(30, from = 100), Nil).buckets.map(_.rows).sum === 30)
      assert(HookedFileSystem.isDone)
      assertRows(data(10), data(30, from = 100))
      HookedFileSystem.onJobCommit(() => sys.error("no commit"))
      intercept[Exception](append(data(30, from = 200), Nil))
      assertRows(data(10), data(30, from = 100))
      assertNothingStaged(folder)
    }
  }

  test("the other algorithm of Hadoop's committer") {
    withSQLConf("mapreduce.fileoutputcommitter.algorithm.version" -> "2") {
      withHookedTable(Seq("p")) { folder =>
        assert(append(data(30, from = 100), Seq("p")).buckets.map(_.rows).sum === 30)
        assertRows(data(10), data(30, from = 100))
        assertNothingStaged(folder)
      }
    }
  }

  test("fails with the count and the buckets of rows that a committer loses", Slow) {
    for (partitionBy <- Seq(Nil, Seq("p"))) withTable("t") {
      append(data(10), partitionBy)
      LosesATask.task = -1
      withSQLConf(SQLConf.FILE_COMMIT_PROTOCOL_CLASS.key -> classOf[LosesATask].getName) {
        assert(append(data(40, from = 100), partitionBy).buckets.map(_.rows).sum === 40)
        LosesATask.task = 0
        val error = intercept[QueryExecutionException](append(data(60, from = 200), partitionBy))
        val left = spark.table("t").where("v >= 200").count()
        assert(left < 60)
        assert(error.getMessage.contains("its tasks wrote 60 rows"))
        assert(error.getMessage.contains(s"and ${60 - left} of them are not in the table's files"))
        val lost = data(60, from = 200)
          .exceptAll(spark.table("t").select("k", "v", "p"))
          .selectExpr("pmod(hash(k), 2) AS b")
          .groupBy("b")
          .count()
          .collect()
        for (Row(bucket: Int, rows: Long) <- lost) {
          assert(error.getMessage.contains(s"$bucket ($rows)"))
        }
      }
    }
  }
}

object ConcurrentAppendsSuite {

  /** Files of this machine; a test may do something at certain points, once each. */
  class HookedFileSystem extends RawLocalFileSystem {
    import HookedFileSystem._

    override def getScheme: String = "hooked"

    override def getUri: URI = URI.create("hooked:///")

    /** Of the folder of committed tasks: the commit of a job begins. */
    override def listStatus(path: Path): Array[FileStatus] = {
      val found = super.listStatus(path)
      if (found.exists(_.getPath.getName.startsWith("task_")) && run(jobCommit)) {
        super.listStatus(path)
      } else {
        found
      }
    }

    override def rename(from: Path, to: Path): Boolean = {
      if (from.getName.startsWith("attempt_")) run(taskCommit)
      super.rename(from, to)
    }
  }

  object HookedFileSystem {
    private type Hook = java.util.concurrent.atomic.AtomicReference[() => Any]
    private val (jobCommit, taskCommit) = (new Hook, new Hook)

    def onJobCommit(hook: () => Any): Unit = jobCommit.set(hook)
    def onTaskCommit(hook: () => Any): Unit = taskCommit.set(hook)
    def isDone: Boolean = jobCommit.get == null && taskCommit.get == null
    def clear(): Unit = Seq(jobCommit, taskCommit).foreach(_.set(null))

    private def run(of: Hook): Boolean = {
      val hook = of.getAndSet(null)
      if (hook != null) hook()
      hook != null
    }
  }

  /** Loses the files of a task, as the committer of another write that removes the folder they are in. */
  class LosesATask(jobId: String, path: String, overwritesPartitions: Boolean)
      extends SQLHadoopMapReduceCommitProtocol(jobId, path, overwritesPartitions) {

    override def commitTask(context: TaskAttemptContext): TaskCommitMessage = {
      if (TaskContext.getPartitionId() == LosesATask.task) {
        val pending = new Path(path, "_temporary/0/_temporary")
        pending
          .getFileSystem(context.getConfiguration)
          .delete(new Path(pending, context.getTaskAttemptID.toString), true)
      }
      super.commitTask(context)
    }
  }

  object LosesATask {
    @volatile var task = -1
  }
}
