package io.github.skewext.skew

import java.lang.{Long => JLong}
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicInteger

import scala.collection.JavaConverters._
import scala.util.{Failure, Random, Success => Done, Try}

import io.github.skewext.platform.SkewConf
import io.github.skewext.skew.SplitRetriesSuite._
import io.github.skewext.skew.plan.SplitTask
import io.github.skewext.skew.run.{MarkKeys, SplitJoinExec, SplitReadSpecs}
import io.github.skewext.{PythonApi, RandomSeed}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.json4s.jackson.JsonMethods
import org.json4s.{DefaultFormats, Formats, JBool}

import org.apache.spark.scheduler.{SparkListener, SparkListenerTaskEnd}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec
import org.apache.spark.sql.execution.datasources.PartitionedFile
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.expressions.UserDefinedFunction
import org.apache.spark.sql.functions._
import org.apache.spark.sql.skewext.{RetriedTasks, TestSessions, TestShuffles, WanderingRDD}
import org.apache.spark.sql.sources.Filter
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{DataFrame, Row, SparkSession}
import org.apache.spark.{FetchFailed, SparkException, Success, TaskContext}

/** Tasks of split joins that run again, because they fail or because what they read is lost. */
class SplitRetriesSuite extends SkewTest with RetriedTasks {

  /** What was given, the join that was split, what tasks saw and how they ended. */
  private case class Run(rows: Seq[Row], join: SplitJoinExec, seen: Set[At], ends: TaskEnds) {

    private val tasks = join.splits.tasks(join.children.map(SplitReadSpecs.readsOf))

    def kinds(of: Set[At]): Set[String] = of.map(at => tasks(at.partition)).map {
      case SplitTask.Whole => "whole"
      case _: SplitTask.Piece => "piece"
      case _: SplitTask.Residual => "residual"
    }

    def joinTasks: Int = tasks.size
  }

  private val AllKinds = Set("whole", "piece", "residual")

  /** Runs the query while its tasks are watched. */
  private def run(df: DataFrame): Run = {
    val ends = new TaskEnds
    spark.sparkContext.addSparkListener(ends)
    try {
      val rows = df.collect().toSeq
      TestSessions.drainEvents(spark)
      val Seq(join) = splitJoins(df)
      Run(rows, join, Watched.seen, ends)
    } finally {
      spark.sparkContext.removeSparkListener(ends)
      Watched.reset()
    }
  }

  private def checkRun(df: DataFrame)(setUp: => Unit): Run = {
    val expected = rowsWhenOff(df)
    Watched.reset()
    setUp
    val done = run(df)
    assertSameRows(done.rows, expected, "the same query with skewext off")
    done
  }

  private def hot(maps: Int): DataFrame = skewed(0, 800, hot = 2, maps = maps)

  /** Its rows are watched in the tasks of the join. */
  private def watchedJoin(hot: DataFrame, role: String = "optional"): DataFrame =
    multiJoin(
      Seq(hot, skewed(1, 60), skewed(2, 60)),
      Seq("k"),
      roles = Seq(role, "optional", "optional"))
      .withColumn("watched", watched(col("v0"), col("v1")))

  /** The shuffle of the only input that so many map tasks write. */
  private def shuffleOf(df: DataFrame, maps: Int): Int = {
    val ids = collect(df.queryExecution.executedPlan) {
      case s: ShuffleQueryStageExec if s.shuffle.numMappers == maps => s.mapStats.get.shuffleId
    }
    assert(ids.size === 1)
    ids.head
  }

  /** Of the stage that joins: how many tasks its report says failed, and how many it counts. */
  private def reportOf(df: DataFrame): (Int, Int) = {
    implicit val formats: Formats = DefaultFormats
    val report = JsonMethods.parse(PythonApi.queryReport(df))
    val Seq(stage) = (report \ "stages").children.filterNot(s => (s \ "prepares") == JBool(true))
    ((stage \ "failed_tasks").extract[Int], (stage \ "tasks").extract[Int])
  }

  test("tasks of every kind fail once", Slow) {
    for (maps <- Seq(1, 4)) {
      val done = checkRun(watchedJoin(hot(maps))) {
        Watched.onRow = at => if (at.attempt == 0) throw new TaskFails
      }
      val again = done.seen.filter(_.attempt == 1)
      assert(done.kinds(again) === AllKinds)
      assert(done.ends.failed === again.size)
    }
  }

  test("tasks that mark keys fail once", Slow) {
    val done = checkRun(markedJoin) {
      Watched.onRow = at => if (at.attempt == 0) throw new TaskFails
    }
    val failed = done.seen.filter(_.attempt == 1).groupBy(_.stage).values.map(_.size).toSeq
    // Those that mark are the tasks of a stage of their own.
    assert(failed.size === 2)
    assert(failed.contains(done.join.splits.markingTasks))
  }

  /** Of which keys are marked, in tasks in which its rows are watched: between shuffle and join. */
  private def markedJoin: DataFrame = {
    val read = skewed(1, 3000, hot = 3, maps = 12)
      .repartition(col("k"))
      .select(col("k"), watched(col("v1"), lit(0L)).as("v1"), col("s1"))
    fullJoin("k")(skewed(0, 20), read, skewed(2, 20))
  }

  private def isMarking: Boolean = Thread
    .currentThread()
    .getStackTrace
    .exists(_.getClassName == classOf[MarkKeys].getName)

  test("tasks that mark keys fail for good: the join is done without them", Slow) {
    val done = checkRun(markedJoin) {
      Watched.onRow = _ => if (isMarking) throw new TaskFails
    }
    assert(done.join.splits.markingTasks > 1)
    assert(done.ends.failed >= 4)
  }

  test("a query that is cancelled while keys are marked ends") {
    Watched.reset()
    Watched.onRow = _ =>
      if (isMarking) {
        spark.sparkContext.cancelAllJobs()
        Thread.sleep(100)
      }
    val e =
      try intercept[SparkException](run(markedJoin))
      finally Watched.reset()
    assert(Iterator.iterate[Throwable](e)(_.getCause).takeWhile(_ != null).exists { cause =>
      String.valueOf(cause.getMessage).contains("cancelled")
    })
  }

  for (all <- Seq(true, false); maps <- Seq(1, 5)) {
    val what = if (all) "all shuffle files" else "a map task's shuffle file"
    test(s"$what of the skewed input lost while pieces read them, $maps map tasks") {
      withTempPath { path =>
        hot(maps).write.parquet(path.getPath)
        val unordered = readInAnyOrder(spark, path.getPath)
        // Of each file a task; and so many pieces that some are left when the files are lost.
        withSQLConf(
          "spark.sql.files.maxPartitionBytes" -> "1",
          SkewConf.SKEW_MAX_REREAD_FACTOR.key -> "20") {
          val df = watchedJoin(unordered)
          val done = checkRun(df) {
            // As many run at a time, so one is done when the next one begins.
            Watched.afterTasks = spark.sparkContext.defaultParallelism
            Watched.once = Some { () =>
              val shuffle = shuffleOf(df, maps)
              if (all) TestShuffles.lose(shuffle) else TestShuffles.loseLast(shuffle)
            }
          }
          // Map tasks of the skewed input ran again, and pieces that read what those wrote.
          assert(done.ends.fetchFailures > 0)
          assert(reportOf(df) === ((done.ends.fetchFailures, done.joinTasks)))
          assert(done.ends.mapTasks === maps + 4 + 4 + (if (all) maps else 1))
          val again = done.seen.filter(_.stageAttempt > 0)
          assert(done.kinds(again).contains("piece"))
          // Tasks that were done before are not done again.
          assert(again.map(_.partition).size < done.joinTasks)
        }
      }
    }
  }

  test(
    "an input that is another one when it is computed again: all tasks of the join, or an error",
    Slow) {
    val maps = 5
    val rows = hot(1).collect().toSeq
    def df = {
      val wandering =
        new WanderingRDD(spark.sparkContext, rows, maps, () => Watched.generation.get)
      // Without a residual: such an input has none.
      watchedJoin(spark.createDataFrame(wandering, hot(1).schema), "required")
    }
    def loseOnce(df: DataFrame): Unit = Watched.once = Some { () =>
      Watched.generation.incrementAndGet()
      TestShuffles.loseLast(shuffleOf(df, maps))
    }
    // Stock Spark 4.2 was seen to give wrong rows: it does again only the map tasks that were lost.
    withSQLConf(TestShuffles.OtherRowsAreNotSeen) {
      // What was written for another stage can be taken back.
      val above = df.repartition(3)
      val done = checkRun(above)(loseOnce(above))
      assert(done.ends.fetchFailures > 0)
      val (first, again) = done.seen.partition(_.stageAttempt == 0)
      assert(first.nonEmpty)
      assert(first.map(_.partition).subsetOf(again.map(_.partition)))
      assert(done.kinds(again) === AllKinds - "residual")
      // What was given to the driver cannot.
      val top = df
      val expected = rowsWhenOff(top)
      Watched.reset()
      loseOnce(top)
      Try(run(top)) match {
        case Failure(e: SparkException) => assert(e.getMessage.contains("indeterminate"))
        case Failure(e) => throw e
        // If no task was done by then.
        case Done(r) => assertSameRows(r.rows, expected, "the same query with skewext off")
      }
    }
  }
}

object SplitRetriesSuite {

  class TaskFails extends RuntimeException("this task fails once")

  /** Where a row was seen. */
  case class At(stage: Int, stageAttempt: Int, partition: Int, attempt: Int)

  /** What is done in tasks, which run in this process. */
  object Watched {
    @volatile var onRow: At => Unit = (_: At) => ()
    @volatile var once: Option[() => Unit] = None

    /** In how many tasks rows have to be seen before `once` is done. */
    @volatile var afterTasks = 0
    val generation = new AtomicInteger
    private val all = ConcurrentHashMap.newKeySet[At]()

    def reset(): Unit = {
      onRow = _ => ()
      once = None
      afterTasks = 0
      all.clear()
    }

    def seen: Set[At] = all.asScala.toSet

    def row(): Unit = {
      val task = TaskContext.get()
      val at =
        At(task.stageId(), task.stageAttemptNumber(), task.partitionId(), task.attemptNumber())
      all.add(at)
      synchronized {
        if (once.isDefined && seen.map(_.partition).size > afterTasks) {
          val act = once
          once = None
          act.foreach(_())
        }
      }
      onRow(at)
    }
  }

  /** One of two numbers. */
  val watched: UserDefinedFunction = udf { (a: JLong, b: JLong) =>
    Watched.row()
    if (a == null) b else a
  }

  /** Such files below an explode: a plain scan is taken to keep the order of its files. */
  def readInAnyOrder(spark: SparkSession, path: String): DataFrame =
    spark.read
      .format(classOf[InAnyOrder].getName)
      .load(path)
      .select(col("*"), explode(array(lit(1))))
      .drop("col")

  /** Parquet files, each by a task, whose rows come in another order each time. */
  class InAnyOrder extends ParquetFileFormat {

    override def isSplitable(
        session: SparkSession,
        options: Map[String, String],
        path: Path): Boolean = false

    override def supportBatch(session: SparkSession, schema: StructType): Boolean = false

    override def buildReaderWithPartitionValues(
        session: SparkSession,
        dataSchema: StructType,
        partitionSchema: StructType,
        requiredSchema: StructType,
        filters: Seq[Filter],
        options: Map[String, String],
        hadoopConf: Configuration): PartitionedFile => Iterator[InternalRow] = {
      val read = super.buildReaderWithPartitionValues(
        session,
        dataSchema,
        partitionSchema,
        requiredSchema,
        filters,
        options,
        hadoopConf)
      file => new Random(RandomSeed.next()).shuffle(read(file).map(_.copy()).toList).iterator
    }
  }

  /** How tasks ended. */
  class TaskEnds extends SparkListener {
    private var ends: Seq[SparkListenerTaskEnd] = Nil

    override def onTaskEnd(end: SparkListenerTaskEnd): Unit = synchronized {
      ends :+= end
    }

    private def count(f: SparkListenerTaskEnd => Boolean): Int = synchronized(ends.count(f))

    def fetchFailures: Int = count(_.reason.isInstanceOf[FetchFailed])

    def failed: Int = count(_.reason.toString.contains(classOf[TaskFails].getName))

    def mapTasks: Int = count(e => e.taskType == "ShuffleMapTask" && e.reason == Success)
  }
}
