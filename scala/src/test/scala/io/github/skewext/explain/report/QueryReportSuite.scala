package io.github.skewext.explain.report

import java.io.{File, FileOutputStream, OutputStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files

import scala.collection.JavaConverters._
import scala.collection.mutable

import io.github.skewext.PythonApi
import io.github.skewext.skew.SkewTest
import org.apache.commons.io.FileUtils
import org.json4s._
import org.json4s.jackson.JsonMethods

import org.apache.spark.SparkConf
import org.apache.spark.io.{CompressionCodec, LZ4CompressionCodec, ZStdCompressionCodec}
import org.apache.spark.scheduler.{SparkListener, SparkListenerStageCompleted, SparkListenerTaskEnd}
import org.apache.spark.sql.execution.joins.BaseJoinExec
import org.apache.spark.sql.functions._
import org.apache.spark.sql.{AnalysisException, DataFrame}

class QueryReportSuite extends SkewTest {

  private implicit val formats: Formats = DefaultFormats

  private lazy val folder = Files.createTempDirectory("logs").toFile

  private val zstd = new ZStdCompressionCodec(new SparkConf(false))

  override protected def sparkConf: SparkConf =
    super.sparkConf
      .set("spark.eventLog.enabled", "true")
      .set("spark.eventLog.dir", folder.toURI.toString)
      .set("spark.eventLog.compress", "false")
      // From Spark 4 on logs roll.
      .set("spark.eventLog.rolling.enabled", "false")

  /** Keeps what tasks say of themselves, and which metrics the stages had. */
  private object seen extends SparkListener {
    val tasks: mutable.Buffer[SparkListenerTaskEnd] = mutable.Buffer.empty
    val accumulators: mutable.Map[Int, Set[Long]] = mutable.Map.empty

    override def onTaskEnd(end: SparkListenerTaskEnd): Unit = synchronized(tasks += end)

    override def onStageCompleted(end: SparkListenerStageCompleted): Unit =
      accumulators(end.stageInfo.stageId) = end.stageInfo.accumulables.keySet.toSet
  }

  override protected def beforeAll(): Unit = {
    super.beforeAll()
    spark.sparkContext.addSparkListener(seen)
  }

  override protected def afterAll(): Unit = {
    try super.afterAll()
    finally FileUtils.deleteQuietly(folder)
  }

  private def report(df: DataFrame): JValue = JsonMethods.parse(PythonApi.queryReport(df))

  private def last(): JValue = JsonMethods.parse(PythonApi.queryReport(spark, null))

  private def stages(report: JValue): Seq[JValue] = (report \ "stages").children

  private def strings(value: JValue): Seq[String] = value.extract[Seq[String]]

  private def joins(df: DataFrame) = collectWithSubqueries(df.queryExecution.executedPlan) {
    case join: BaseJoinExec => join
  }

  /** Runs the query, and compares the figures of its report with what a listener heard. */
  private def checked(df: DataFrame): JValue = {
    df.collect()
    val found = report(df)
    val plans = joins(df) ++ operators(df)
    val ids = plans.flatMap(_.metrics.values.map(_.id)).toSet
    val ran = seen.accumulators.toSeq.collect { case (s, own) if own.exists(ids) => s }.sorted
    assert(ran.nonEmpty)
    val (preparing, joining) = stages(found).partition(s => (s \ "prepares").extract[Boolean])
    // Those that mark keys count into a metric of the join, too.
    assert((preparing ++ joining).map(s => (s \ "stage").extract[Int]) === ran)
    assert(
      preparing.size === operators(df).count(_.metrics.get("numMarkingTasks").exists(_.value > 0)))
    for (stage <- stages(found)) {
      val tasks = seen.tasks.filter(_.stageId == (stage \ "stage").extract[Int])
      def figures(name: String) =
        Seq("slowest", "total").map(of => (stage \ of \ name).extract[Long])
      val slowest = tasks.maxBy(_.taskMetrics.executorRunTime)
      assert((stage \ "tasks").extract[Int] === tasks.size)
      val runs = tasks.map(_.taskMetrics.executorRunTime)
      assert((stage \ "run_ms").extract[Seq[Long]] === runs.sorted.reverse)
      assert(figures("run_ms") === Seq(slowest.taskMetrics.executorRunTime, runs.sum))
      assert(
        figures("shuffle_rows")(1) ===
          tasks.map(_.taskMetrics.shuffleReadMetrics.recordsRead).sum)
      val read = tasks.map(_.taskMetrics.inputMetrics)
      assert(figures("input_rows")(1) === read.map(_.recordsRead).sum)
      assert(figures("input_bytes")(1) === read.map(_.bytesRead).sum)
      val bytes = tasks.map(_.taskMetrics.shuffleReadMetrics.totalBytesRead)
      assert(figures("shuffle_bytes")(1) === bytes.sum)
      assert(bytes.contains(figures("shuffle_bytes").head))
    }
    // The operators of each stage are those that told their metrics there.
    for ((stage, s) <- joining.zip(ran)) {
      val there = plans.filter(_.metrics.values.exists(m => seen.accumulators(s)(m.id)))
      val names = (stage \ "joins" \ "operator") match {
        case JArray(several) => several.map(_.extract[String])
        case one => Seq(one.extract[String])
      }
      assert(names === there.map(_.nodeName.takeWhile(_ != '(').trim))
    }
    found
  }

  private def explained(report: JValue): Seq[String] = strings(report \ "explained")

  test("a split join, and what is explained of it") {
    val l = skewed(0, 3000, 3, maps = 12).withColumnRenamed("k", "l")
    val r = skewed(1, 20).withColumnRenamed("k", "r")
    val df = l.join(r, col("l") === col("r"), "full")
    val found = checked(df)
    val split = splitJoins(df).head.splits
    val Seq(marking, stage) = stages(found)
    assert((marking \ "tasks").extract[Int] === split.markingTasks)
    assert(marking \ "joins" === stage \ "joins")
    val Seq(join) = (stage \ "joins").children
    assert(join \ "operator" === JString("SplitJoin"))
    val marked =
      s", after ${split.markingTasks} task${if (split.markingTasks == 1) "" else "s"} that marked keys"
    assert(join \ "split" === JString(split.describe + marked))
    assert(strings(join \ "keys") === Seq("l"))
    assert((join \ "metrics" \ "number of pieces").extract[Int] === split.pieces)
    assert((join \ "metrics" \ "number of output rows").extract[Int] === df.count())
    assert(
      explained(found) === Seq(
        "SplitJoin full outer [l = r]: split: several tasks share its skewed partitions; " +
          split.describe + marked))
    assert((found \ "settings" \ "skewext_loaded").extract[Boolean])
    assert(strings(found \ "settings" \ "switched_off") === Nil)
    assert((found \ "settings" \ "skewed_bytes").extract[Int] === 2500)
  }

  test("the partitions of a join of two sides can be split") {
    withSQLConf("spark.skewext.join.enabled" -> "true") {
      val found = checked(skewed(0, 60).join(skewed(1, 60), "k"))
      val joins = stages(found).flatMap(stage => (stage \ "joins").children).distinct
      assert(joins.map(_ \ "operator") === Seq(JString("BuildProbeJoin")))
      assert(joins.map(_ \ "joins_partitions") === Seq(JBool(true)))
    }
  }

  test("partitions of a query that runs one of them first, and then the others") {
    withSQLConf("spark.sql.adaptive.coalescePartitions.enabled" -> "false") {
      skewed(0, 60).join(skewed(1, 60), "k").take(40)
    }
    val ran = stages(last()).map { stage =>
      val tasks = seen.tasks.filter(_.stageId == (stage \ "stage").extract[Int])
      val longest = tasks.map(_.taskMetrics.executorRunTime).max
      val slowest = tasks.filter(_.taskMetrics.executorRunTime == longest)
      val partition = (stage \ "slowest" \ "partition").extract[Int]
      assert(slowest.map(_.taskInfo.partitionId).contains(partition))
      tasks.map(_.taskInfo.partitionId).min
    }
    assert(ran.toSet === Set(0, 1))
  }

  test("a multi-way join, rewritten, with nulls that were spread") {
    withSQLConf("spark.skewext.multiJoin.rewrite.enabled" -> "true") {
      val inputs = (0 until 3).map(i => skewed(i, 60))
      val found = checked(inputs.reduceLeft(_.join(_, Seq("k"), "full")))
      assert(
        explained(found) === Seq(
          "full outer join of 3 inputs on [k]: rewritten: 2 full outer joins became one operator"))
    }
  }

  test("joins in several stages, broadcast, not compiled, switched off, none", Slow) {
    val a = skewed(0, 60)
    val chain = a
      .join(skewed(1, 60).withColumnRenamed("k", "b").hint("merge"), col("k") === col("b"))
      .join(skewed(2, 60).withColumnRenamed("k", "c").hint("merge"), col("v1") === col("c"))
      .join(skewed(3, 20).withColumnRenamed("k", "d").hint("broadcast"), col("k") === col("d"))
    withSQLConf(Off) {
      val found = checked(again(chain))
      assert(stages(found).size === 2)
      assert(explained(found) === Nil)
      assert(strings(found \ "settings" \ "switched_off") === Seq(Off._1))
      assert((found \ "joins").extract[Int] === 3)
      // Two of them have one name, and what they have measured tells where they ran.
      val keys = stages(found).map(s => (s \ "joins").children.map(j => strings(j \ "keys")))
      assert(keys === Seq(Seq(Seq("k")), Seq(Seq("k"), Seq("v1"))))
      withSQLConf("spark.sql.codegen.wholeStage" -> "false") {
        again(chain).collect()
        // Two operators have one name, and nothing tells their stages apart.
        val both = stages(last()).map(s => (s \ "joins").children.size)
        assert(both.nonEmpty && both.forall(_ >= 1))
      }
    }
    withTempPath { path =>
      a.write.parquet(path.getPath)
      val files = checked(spark.read.parquet(path.getPath).join(broadcast(skewed(1, 20)), "k"))
      val Seq(stage) = stages(files)
      assert((stage \ "total" \ "input_rows").extract[Int] === 60)
    }
    withTable("JoinedOrders") {
      a.write.saveAsTable("JoinedOrders")
      val grouped = spark.table("JoinedOrders").groupBy("k").count()
      grouped.collect()
      assert((report(grouped) \ "joins").extract[Int] === 0)
    }
    val grouped = a.groupBy("k").count()
    grouped.collect()
    val none = report(grouped)
    assert(stages(none).isEmpty && (none \ "joins").extract[Int] === 0)
    assert((none \ "other_run_ms").extract[Long] >= 0)
    // The last query with a join is another one.
    assert((last() \ "query").extract[Long] < (none \ "query").extract[Long])
  }

  test("an event log gives the same report, compressed or not, in one file or several") {
    val df = skewed(0, 800, 2)
      .join(skewed(1, 60).withColumnRenamed("k", "r"), col("k") === col("r"), "full")
    df.collect()
    val live = last()
    val number = Long.box((live \ "query").extract[Long])
    val written = folder.listFiles().filter(_.getName.endsWith(".inprogress")).head
    val lines = Files.readAllLines(written.toPath).asScala.toSeq
    val (one, two) = lines.splitAt(lines.size / 2)
    val rolled = new File(folder, "eventlog_v2_app")
    rolled.mkdir()
    new File(rolled, "appstatus_app").createNewFile()
    write(new File(rolled, "events_1_app.zstd"), one, Some(zstd))
    write(new File(rolled, "events_2_app.zstd"), two, Some(zstd))
    val lz4 =
      write(new File(folder, "app.lz4"), lines, Some(new LZ4CompressionCodec(new SparkConf(false))))
    // A log that was broken off, in a line that nobody needs.
    val cut = write(new File(folder, "app.1"), lines :+ lines.last.take(20), None)
    for (log <- Seq(written, rolled, lz4, cut)) {
      val events = PythonApi.eventLog(spark, log.getPath)
      val logged = JsonMethods.parse(PythonApi.queryReport(events, number))
      for (part <- Seq("description", "milliseconds", "stages", "explained", "settings", "joins")) {
        assert(logged \ part === live \ part, s"$part of ${log.getName}")
      }
      assert(events.bytesRead === events.totalBytes)
      val longest = JsonMethods.parse(PythonApi.queryReport(events, null))
      val listed = (longest \ "queries").children.filter(q => (q \ "joins").extract[Int] > 0)
      assert(
        longest \ "milliseconds" === JInt(listed.map(q => (q \ "milliseconds").extract[Int]).max))
    }
    errorsOf(lines, number)
  }

  private def write(file: File, lines: Seq[String], codec: Option[CompressionCodec]): File = {
    val out = new FileOutputStream(file)
    val to = codec.fold[OutputStream](out)(_.compressedOutputStream(out))
    lines.foreach(line => to.write((line + "\n").getBytes(UTF_8)))
    to.close()
    file
  }

  private def errorsOf(lines: Seq[String], known: java.lang.Long): Unit = {
    def log(name: String, lines: Seq[String], query: java.lang.Long = null): () => Unit = { () =>
      val file = write(new File(folder, name), lines, None)
      PythonApi.queryReport(PythonApi.eventLog(spark, file.getPath), query)
    }
    val unfinished = lines.filterNot(_.contains("SparkListenerSQLExecutionEnd"))
    val errors = Seq[(() => Unit, String)](
      (log("empty", Nil), "is not an event log"),
      (log("other", Seq("a,b", "1,2")), "is not an event log"),
      (log("none", lines.take(3)), "There is no query of SQL or DataFrames in the event log."),
      (log("running", unfinished), "has a join and is done"),
      (log("running", unfinished, known), s"Query $known in the event log has not come to its end"),
      (log("missing", lines, 12345L), "There is no query 12345 in the event log; known are"),
      (() => PythonApi.eventLog(spark, s"$folder/nothing"), "There is no event log"),
      (() => PythonApi.eventLog(spark, "s3a://bucket/log"), "cannot be read as an event log"),
      (() => PythonApi.eventLog(spark, ""), "cannot be read as an event log"),
      (() => PythonApi.eventLog(spark, folder.getPath), "the log of one application"),
      (
        () => PythonApi.queryReport(spark, 12345L),
        "There is no query 12345 in this application; known are"),
      (() => PythonApi.queryReport(skewed(0, 60)), "This plan has not ended; count()"))
    for ((ask, message) <- errors) {
      val error = intercept[AnalysisException](ask())
      assert(error.getMessage.contains(message))
    }
    val nothing = spark.sql("SELECT 1 AS k").join(spark.sql("SELECT 1 AS k"), "k").where("1 = 0")
    nothing.collect()
    val none = intercept[AnalysisException](report(nothing))
    assert(none.getMessage.contains("No tasks are known of query"))
  }
}
