package io.github.skewext.explain.ui

import java.io.File
import java.net.URL
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files

import scala.collection.JavaConverters._
import scala.io.Source
import scala.util.Try

import io.github.skewext.explain.{Explainer, ExplanationJson}
import io.github.skewext.platform.{Guard, SkewConf}
import io.github.skewext.skew.SkewTest
import io.github.skewext.{PythonApi, SkewExtensions}
import org.apache.commons.io.FileUtils
import org.apache.commons.text.StringEscapeUtils.unescapeXml
import org.json4s.jackson.JsonMethods
import org.json4s.{JArray, JString}
import org.scalatest.time.SpanSugar._

import org.apache.spark.SparkConf
import org.apache.spark.deploy.history.TestHistoryServer
import org.apache.spark.sql.functions._
import org.apache.spark.sql.skewext.{TestExplained, TestSessions}
import org.apache.spark.sql.{DataFrame, SparkSessionExtensions}

/** Pages over HTTP, of a running application and of Spark's history server. */
class SkewextTabSuite extends SkewTest {

  private lazy val folder = Files.createTempDirectory("logs").toFile

  private val retained = 20

  override protected def sparkConf: SparkConf =
    super.sparkConf
      .set("spark.ui.enabled", "true")
      .set("spark.ui.port", "0")
      .set("spark.sql.ui.retainedExecutions", retained.toString)
      .set("spark.eventLog.enabled", "true")
      .set("spark.eventLog.dir", folder.toURI.toString)
      .set("spark.eventLog.rolling.enabled", "false")
      .set("spark.eventLog.compress", "false")

  /** What only a context that stops can show: of a query that has just ended, its log tells, too. */
  override protected def afterAll(): Unit = {
    try {
      val last = run(split()) + 1
      split().collect()
      super.afterAll()
      val lines = folder.listFiles().toSeq.flatMap(log => Files.readAllLines(log.toPath).asScala)
      val told = explainedIn(lines)
      assert(told.exists(_.contains(s""""executionId":$last,""")))
    } finally FileUtils.deleteQuietly(folder)
  }

  private val event = "\"Event\":\"org.apache.spark.sql.skewext.SparkListenerJoinsExplained\""

  private def explainedIn(log: Seq[String]): Seq[String] = log.filter(_.contains(event))

  private def fetch(address: String): String = {
    val page = Source.fromURL(new URL(address), UTF_8.name)
    try page.mkString
    finally page.close()
  }

  private def live: String = s"http://localhost:${new URL(spark.sparkContext.uiWebUrl.get).getPort}"

  /** The cells and lines that a reader sees below Spark's header. */
  private def seen(page: String): Seq[String] = {
    val content = page.substring(page.lastIndexOf("<h3")).split("<footer").head
    content.split("<[^>]*>").map(text => unescapeXml(text).trim).filter(_.nonEmpty).toSeq
  }

  private def queryPage(id: Long, of: String = live): String = fetch(s"$of/skewext/query/?id=$id")

  /** Runs it, and gives its number. */
  private def run(df: => DataFrame): Long = {
    df.collect()
    TestSessions.drainEvents(spark)
    TestExplained.lastQuery(spark)
  }

  private def explained: Map[Long, String] = TestExplained.of(spark)

  private def split(): DataFrame = hotFirst(2).reduce(_.join(_, Seq("k"), "full"))

  /** The columns of figures of a query's line in the list. */
  private def figures(id: Long): Seq[String] = {
    val row = fetch(s"$live/skewext/").split("<tr>").find(_.contains(s"/query/?id=$id")).get
    seen("<h3" + row).takeRight(4)
  }

  test("the page has the explanation and a bar for each task", Slow) {
    withSQLConf(SkewConf.MULTI_JOIN_REWRITE.key -> "true") {
      val chain = hotFirst(3).reduce(_.join(_, Seq("k"), "full"))
      val ordered = withSkewed(_.sortWithinPartitions("k"))
      for (df <- Seq(chain, ordered)) {
        val id = run(df)
        val explanation = Explainer.explain(df.queryExecution)
        assert(ExplanationJson.read(explained(id)) === explanation)
        val page = queryPage(id)
        val texts = seen(page)
        for (join <- explanation.joins) {
          assert(texts.contains(s"Join ${join.number}: ${join.title}"))
          assert(texts.exists(_.startsWith(s"${join.origin.status}: ${join.origin.text}")))
          assert(join.inputs.forall(i => texts.exists(_.contains(i.source))))
          assert(join.skew.nonEmpty)
          for (told <- join.skew.map(_.text) ++ join.skew.flatMap(_.advice))
            assert(texts.exists(_.contains(told)), told)
        }
        assert(texts.contains(s"Joins of query $id"))
        // The advice is that of reports.
        val report = JsonMethods.parse(PythonApi.queryReport(spark, id))
        val JArray(List(JString(advice))) = report \ "advice"
        assert(advice.startsWith("The tasks of joins are "))
        val verdict = texts.indexOf(advice)
        assert(verdict >= 0 && verdict < texts.indexWhere(_.startsWith("Join 1: ")), texts)
        val tasks = "<rect".r.findAllIn(page).size
        assert(tasks > 0 && texts.exists(_.contains(s": $tasks tasks; the slowest took")))
        assert("<title>partition \\d".r.findAllIn(page).size === tasks)
        // Nothing but these boxes scrolls sideways on a phone.
        assert(page.contains("""<div class="text-break">"""))
        val boxes = """<div class="table-responsive[^>]*>\s*<svg""".r.findAllIn(page).size
        assert(boxes > 0 && boxes === "<svg".r.findAllIn(page).size)
      }
    }
  }

  test("distinguishes stages that search keys from stages that join") {
    val l = skewed(0, 3000, 3, maps = 12).withColumnRenamed("k", "l")
    val r = skewed(1, 20).withColumnRenamed("k", "r")
    val df = l.join(r, col("l") === col("r"), "full")
    val id = run(df)
    assert(splitJoins(df).head.splits.markingTasks > 0)
    val page = queryPage(id)
    assert("keys before SplitJoin".r.findAllIn(page).size === 1)
    assert("/stages/stage/".r.findAllIn(page).size === 2)
  }

  /** A join of which a partition is skewed, and is left whole as nothing may be sliced. */
  private def withSkewed(input: DataFrame => DataFrame): DataFrame = {
    val sides = hotFirst(2)
    input(sides.head).join(sides(1), Seq("k"), "full")
  }

  test("the list has a line for each query with a join, and for no other", Slow) {
    val before = explained.keySet
    val known = Explainer.explain(split().queryExecution)
    assert(known.joins.size === 1)
    val one = run(split())
    assert(figures(one) === Seq("1", "0", "1", "0"))
    val whole = withSkewOff(run(split()))
    assert(figures(whole) === Seq("1", "0", "0", "0"))
    val asked = run(fullJoin("k")((0 until 3).map(skewed(_, 60)): _*))
    assert(figures(asked).take(2) === Seq("1", "1"))
    assert(explained.keySet -- before === Set(one, whole, asked))
    val others = Seq[() => Unit](
      () => skewed(0, 60).groupBy("k").count().collect(),
      () => sql("EXPLAIN SELECT * FROM range(3) a FULL JOIN range(3) b USING (id)").collect(),
      () => withSQLConf(SkewConf.UI_ENABLED.key -> "false")(run(split())),
      () => withSQLConf(Off)(run(split())),
      () => Try(sql("SELECT nothing FROM range(3) a JOIN range(3) b USING (id)").collect()))
    others.foreach(_())
    TestSessions.drainEvents(spark)
    assert(explained.keySet -- before === Set(one, whole, asked))
    val list = fetch(s"$live/skewext/")
    assert("""<div class="table-responsive">\s*<table""".r.findAllIn(list).size === 1)
    assert(list.contains("""<td class="text-break"><a href="""))
    // However many sessions have the extension.
    new SkewExtensions()(new SparkSessionExtensions)
    assert(TestExplained.listeners(spark) === 1)
    assert("<a[^>]*>skewext</a>".r.findAllIn(fetch(s"$live/jobs/")).size === 1)
  }

  test("the style sheet of Spark's UI has the classes of the pages") {
    val style = fetch(s"$live/static/bootstrap.min.css")
    for (name <- Seq(
        "text-break",
        "text-nowrap",
        "table-responsive",
        "alert-warning",
        "alert-success"))
      assert(style.contains(s".$name{"), name)
  }

  test("a write has the joins that it wrote, once; a query that fails has its own") {
    withTable("t") {
      val before = explained.keySet
      sql(
        "CREATE TABLE t USING parquet AS SELECT /*+ MERGE(b) */ * FROM range(9) a " +
          "FULL JOIN range(5) b USING (id)").collect()
      TestSessions.drainEvents(spark)
      val written = (explained.keySet -- before).toSeq
      assert(written.size === 1)
      assert(
        seen(queryPage(written.head)).exists(_.startsWith("Join 1: ")),
        queryPage(written.head))
    }
    val failing = split().withColumn("x", raise_error(col("s0")))
    val failed = run(Try(failing.collect()).map(_ => failing).getOrElse(spark.range(1).toDF()))
    assert(explained.contains(failed - 1))
    assert(seen(queryPage(failed - 1)).exists(_.contains("failed")))
  }

  test("names and texts cannot be HTML") {
    val script = "<script>alert('x')</script>"
    val sides = Seq(skewed(0, 800, hot = 2), skewed(1, 60)).map(_.withColumnRenamed("k", script))
    spark.sparkContext.setJobDescription(s"of $script")
    val id =
      try run(sides.reduce(_.join(_, Seq(script), "full")).where(s"v0 > 3 OR '<b>' = s1"))
      finally spark.sparkContext.setJobDescription(null)
    for (page <- Seq(queryPage(id), fetch(s"$live/skewext/"))) {
      assert(!page.contains("<script>alert"))
      assert(seen(page).exists(_.contains(script)))
    }
  }

  test("redacts secrets and shortens long texts") {
    withSQLConf("spark.sql.redaction.string.regex" -> "secret_\\w+") {
      val many = (0 until 2000).mkString("k IN (", ", ", ")")
      val id = run(split().where(s"s0 <> 'secret_word' AND ($many OR k IS NULL)"))
      val json = explained(id)
      assert(!json.contains("secret_word") && json.contains("*********(redacted)"))
      assert(json.length < 20000)
      val lists = (0 until 8).map(i => (i until i + 400).mkString("k IN (", ", ", ")"))
      val inputs = (0 until 20).map(i => spark.range(9).selectExpr("id AS k", s"id AS v$i"))
      val wide = run(fullJoin("k")(inputs: _*).where(lists.mkString(" AND ")))
      assert(explained(wide).length < 20000)
      val texts = seen(queryPage(id))
      assert(!texts.exists(_.contains("secret_word")) && texts.exists(_.contains("(redacted)")))
    }
  }

  test("a wrong number of a query is answered by a sentence") {
    for (query <- Seq("", "?id=", "?id=x", "?id=123456", "?id=%3Cscript%3E")) {
      val page = fetch(s"$live/skewext/query/$query")
      assert(seen(page).contains("No joins of such a query are remembered."))
    }
  }

  test("the history server shows the same, and without our class all but that", Slow) {
    val id = run(split())
    val page = queryPage(id)
    val written = folder.listFiles().filter(_.getName.endsWith(".inprogress")).head
    val lines = Files.readAllLines(written.toPath, UTF_8).asScala.toSeq
    assert(explainedIn(lines).exists(_.contains(s""""executionId":$id,""")))
    val app = spark.sparkContext.applicationId
    served(lines, app) { history =>
      assert(seen(queryPage(id, history)) === seen(page))
      // Of the older ones either may have forgotten some.
      def newest(server: String) = seen(fetch(s"$server/skewext/")).take(80)
      assert(newest(history) === newest(live))
    }
    val unknown = lines.map(_.replace(event, "\"Event\":\"com.example.NotThere\""))
    assert(unknown !== lines)
    served(unknown, app) { history =>
      assert(fetch(s"$history/SQL/execution/?id=$id").contains("SplitJoin"))
      assert(!fetch(s"$history/SQL/").contains(">skewext<"))
      assert(fetch(s"$live/SQL/").contains(">skewext<"))
    }
  }

  private def served(lines: Seq[String], app: String)(body: String => Unit): Unit = {
    val logs = Files.createTempDirectory("served").toFile
    try {
      FileUtils.writeLines(new File(logs, app), UTF_8.name, lines.asJava)
      TestHistoryServer.serving(logs) { server =>
        val history = s"$server/history/$app"
        eventually(timeout(30.seconds))(fetch(s"$history/jobs/"))
        body(history)
      }
    } finally FileUtils.deleteQuietly(logs)
  }

  test("as many are kept as Spark remembers queries, the newest", Slow) {
    val small = Seq(0, 1).map(skewed(_, 20, maps = 1)).reduce(_.join(_, "k"))
    val ids = (0 until retained + 10).map(_ => run(again(small)))
    eventually(timeout(10.seconds)) {
      // As with Spark's own, some are dropped together.
      assert(explained.size <= retained && explained.keySet.subsetOf(ids.toSet))
    }
    assert(explained.contains(ids.last))
    assert(seen(queryPage(ids.head)).contains("No joins of such a query are remembered."))
  }

  test("leaves out failed parts and logs the failure once") {
    assert(Guard.failures.filter(_.contains("Spark's UI")) === Set.empty)
  }

  test("a plan too deep for the listener's thread is left out, and those after it are not") {
    val value =
      (0 until 75).foldLeft(col("v0"))((value, i) => value.bitwiseXOR(col("v0")) + i.toLong)
    val Seq(one, other) = hotFirst(2)
    val deep = one.where(value.isNull || value =!= 0).join(other, Seq("k"), "full")
    deep.collect()
    TestSessions.drainEvents(spark)
    val id = TestExplained.lastQuery(spark)
    assert(explained.contains(id))
    TestExplained.explainInThread(spark, deep.queryExecution, id + 1000, stack = 160 * 1024)
    assert(!explained.keySet.contains(id + 1000))
    TestExplained.explainInThread(spark, deep.queryExecution, id + 1000, stack = 16 * 1024 * 1024)
    assert(explained.keySet.contains(id + 1000))
  }
}
