package org.apache.spark.sql.skewext

import java.io.{FileNotFoundException, FilterInputStream, IOException, InputStream}

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.SparkConf
import org.apache.spark.deploy.history.{EventLogFileReader, EventLogFileWriter}
import org.apache.spark.internal.config.Status.ASYNC_TRACKING_ENABLED
import org.apache.spark.io.CompressionCodec
import org.apache.spark.scheduler._
import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.ui._
import org.apache.spark.status.{AppStatusListener, AppStatusStore, ElementTrackingStore}
import org.apache.spark.util.Utils
import org.apache.spark.util.kvstore.InMemoryStore

/**
 * The event log of an application: a file, or the folder of a rolled log, compressed or not. Lives
 * here because the code that replays such logs for Spark's history server is `private[spark]`.
 *
 * A log may have many GBs. It is read line by line in two passes: one for the queries in it, and
 * one for the events of one query. Only these are stored. Lines of other events are not parsed.
 *
 * @param isJoin whether an operator of this name is a join.
 */
final class EventLog(path: String, hadoop: Configuration, isJoin: String => Boolean) {
  import EventLog._

  private val reader: EventLogFileReader = readable {
    val root = new Path(path)
    EventLogFileReader(root.getFileSystem(hadoop), root).getOrElse {
      throw SqlInternals.analysisError(
        s"$path is a folder, but not of an event log: give the log of one application, a file, or " +
          "a folder whose name begins with eventlog_v2_ and that has its appstatus file.")
    }
  }

  /** Number of bytes to read in all passes together. */
  val totalBytes: Long = Passes * readable(reader.totalSize)

  @volatile private var bytes = 0L

  /** Number of bytes read so far. Another thread may call it. */
  def bytesRead: Long = bytes

  /** The queries of the application, in the order in which they began. */
  lazy val queries: Seq[QuerySummary] = {
    val summaries = new Summaries(isJoin)
    var events = 0L
    replay(Seq(summaries)) { line =>
      val name = Begin.findPrefixMatchOf(line).map(_.group(1))
      events += name.size
      name.exists(SummaryEvents.contains)
    }
    if (events == 0) throw SqlInternals.analysisError(s"$path is not an event log of Spark.")
    summaries.queries
  }

  /** The status of one query according to the log. */
  def status(query: Long): QueryStatus = {
    val store = new InMemoryStore
    val conf = new SparkConf(false).set(ASYNC_TRACKING_ENABLED, false)
    val tracking = new ElementTrackingStore(store, conf)
    val events = new QueryEvents(query)
    replay(
      Seq(
        events,
        new ExplainedQueries(conf, tracking),
        new AppStatusListener(tracking, conf, live = false),
        new SQLAppStatusListener(conf, tracking, live = false)))(events.isWanted)
    // Writes elements that have not ended.
    tracking.close(false)
    new QueryStatus(new AppStatusStore(store), new SQLAppStatusStore(store))
  }

  private def replay(listeners: Seq[SparkListenerInterface])(wanted: String => Boolean): Unit =
    readable {
      val bus = new ReplayListenerBus
      listeners.foreach(bus.addListener)
      // The log ends anywhere if the application still runs or was killed.
      reader.listEventLogFiles.map(_.getPath).forall { file =>
        Utils.tryWithResource(open(file)) { in =>
          bus.replay(in, file.toString, maybeTruncated = true, wanted)
        }
      }
    }

  private def open(file: Path): InputStream = {
    val in = new Counted(file.getFileSystem(hadoop).open(file))
    EventLogFileWriter
      .codecName(file)
      .filter(Codecs.contains)
      .map(
        CompressionCodec.createCodec(new SparkConf(false), _).compressedContinuousInputStream(in))
      .getOrElse(in)
  }

  private def readable[T](read: => T): T =
    try {
      read
    } catch {
      case _: FileNotFoundException =>
        throw SqlInternals.analysisError(s"There is no event log $path.")
      case e @ (_: IOException | _: IllegalArgumentException) => throw unreadable(e)
      // Hadoop wraps it where the connector of a file system is missing.
      case e: RuntimeException if e.getCause.isInstanceOf[ClassNotFoundException] =>
        throw unreadable(e)
    }

  private def unreadable(e: Throwable): AnalysisException =
    SqlInternals.analysisError(s"$path cannot be read as an event log: $e", Some(e))

  private class Counted(in: InputStream) extends FilterInputStream(in) {

    override def read(): Int = {
      val byte = super.read()
      if (byte >= 0) bytes += 1
      byte
    }

    override def read(to: Array[Byte], offset: Int, length: Int): Int = {
      val read = super.read(to, offset, length)
      if (read > 0) bytes += read
      read
    }
  }
}

private object EventLog {

  val Passes = 2

  /** The endings of the names of files that Spark has compressed. */
  val Codecs: Set[String] = Set("lz4", "lzf", "snappy", "zstd")

  /** The start of an event's line: its name, and if present the number of its query or stage. */
  val Begin =
    """\{"Event":"([\w.$]+)"(?:,(?:"Stage Info":\{)?"(?:executionId|Stage ID)":(\d+))?""".r

  val SummaryEvents: Set[String] =
    Set(classOf[SparkListenerSQLExecutionStart], classOf[SparkListenerSQLExecutionEnd])
      .map(_.getName)

  private val ApplicationEvents = Set(
    "SparkListenerLogStart",
    "SparkListenerApplicationStart",
    "SparkListenerEnvironmentUpdate",
    "SparkListenerJobEnd")

  private val StageEvents = Set(
    "SparkListenerStageSubmitted",
    "SparkListenerStageCompleted",
    "SparkListenerTaskStart",
    "SparkListenerTaskEnd")

  private val SqlEvents = classOf[SparkListenerSQLExecutionStart].getPackage.getName + "."

  private val Explained = classOf[SparkListenerJoinsExplained].getName

  /** Collects the queries. */
  class Summaries(isJoin: String => Boolean) extends SparkListener {
    private val seen = mutable.LinkedHashMap.empty[Long, QuerySummary]

    def queries: Seq[QuerySummary] = seen.values.toSeq

    override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
      case start: SparkListenerSQLExecutionStart =>
        val id = start.executionId
        val joins = SparkPlanGraph(start.sparkPlanInfo).allNodes.count(node => isJoin(node.name))
        seen(id) = QuerySummary(id, start.description, start.time, None, joins)
      case end: SparkListenerSQLExecutionEnd =>
        seen.get(end.executionId).foreach { query =>
          seen(query.id) = query.copy(completed = Some(end.time))
        }
      case _ =>
    }
  }

  /** Selects the events of one query. It finds the query's stages by its jobs. */
  class QueryEvents(query: Long) extends SparkListener {
    private val stages = mutable.HashSet.empty[Long]
    private val property = s""""${SQLExecution.EXECUTION_ID_KEY}":"$query""""

    override def onJobStart(job: SparkListenerJobStart): Unit =
      stages ++= job.stageIds.map(_.toLong)

    def isWanted(line: String): Boolean = Begin.findPrefixMatchOf(line).exists { begin =>
      def number: Option[Long] = Option(begin.group(2)).map(_.toLong)
      begin.group(1) match {
        case name if ApplicationEvents.contains(name) => true
        case "SparkListenerJobStart" => line.contains(property)
        case name if StageEvents.contains(name) => number.exists(stages.contains)
        case name =>
          (name == Explained || name.startsWith(SqlEvents)) && number.contains(query)
      }
    }
  }
}
