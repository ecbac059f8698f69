package org.apache.spark.sql.skewext.ui

import java.util.{Collections, WeakHashMap}

import scala.util.Try
import scala.xml.{Node, NodeSeq}

import io.github.skewext.explain.ui.{QueriesView, QueryView}
import io.github.skewext.explain.{Explanation, ExplanationJson}
import io.github.skewext.platform.{Guard, SkewConf}

import org.apache.spark.scheduler.SparkListener
import org.apache.spark.sql.execution.ui.SQLAppStatusStore
import org.apache.spark.sql.skewext.SparkShims.HttpRequest
import org.apache.spark.sql.skewext.{ExplainedQueries, ExplainedQuery, QueryStatus}
import org.apache.spark.status.{AppHistoryServerPlugin, ElementTrackingStore}
import org.apache.spark.ui.{SparkUI, SparkUITab, UIUtils, WebUIPage}
import org.apache.spark.{SparkConf, SparkContext}

/**
 * The tab `skewext` of Spark's UI: the joins of each query, and figures of their tasks. It reads
 * the data that listeners have stored, when a page is requested.
 */
private[spark] class SkewextTab(parent: SparkUI) extends SparkUITab(parent, SkewextTab.Name) {

  override val name: String = SkewextTab.Name

  val status = new QueryStatus(parent.store, new SQLAppStatusStore(parent.store.store))

  attachPage(new QueriesPage(this))
  attachPage(new QueryPage(this))
  parent.attachTab(this)

  /** The explained queries, the newest first. */
  def explained: Seq[(Long, Explanation)] =
    status.explanations.reverse.flatMap { case (id, json) =>
      ExplanationJson.readable(json).map(id -> _)
    }

  def explained(id: Long): Option[Explanation] = ExplanationJson.stored(status, id)

  /** The address of a page of Spark's UI. */
  def link(request: HttpRequest)(path: String): String =
    UIUtils.prependBaseUri(request, parent.basePath, path)

  def page(request: HttpRequest, title: String, content: => NodeSeq): Seq[Node] =
    UIUtils.headerSparkPage(request, title, content, this)
}

private class QueriesPage(tab: SkewextTab) extends WebUIPage("") {
  override def render(request: HttpRequest): Seq[Node] =
    tab.page(request, "Joins", QueriesView(tab.explained, tab.status, tab.link(request)))
}

private class QueryPage(tab: SkewextTab) extends WebUIPage("query") {
  override def render(request: HttpRequest): Seq[Node] = {
    val found = for {
      id <- Option(request.getParameter("id")).flatMap(text => Try(text.toLong).toOption)
      explanation <- tab.explained(id)
    } yield tab.page(
      request,
      s"Joins of query $id",
      QueryView(id, explanation, tab.status, tab.link(request)))
    found.getOrElse(tab.page(request, "Joins", <p>No joins of such a query are remembered.</p>))
  }
}

object SkewextTab {

  private val Name = "skewext"

  private val attached =
    Collections.newSetFromMap(
      Collections.synchronizedMap(new WeakHashMap[SparkContext, java.lang.Boolean]()))

  def isAttachedTo(context: SparkContext): Boolean = attached.contains(context)

  /** Whether the application has a UI or an event log. */
  def canAttachTo(context: SparkContext): Boolean =
    context.ui.isDefined || context.eventLogger.isDefined

  /**
   * Attaches the tab to the context that is active when Spark applies extensions to a new session.
   */
  def attachToActive(): Unit = SparkContext.getActive.foreach(attach)

  /**
   * Adds the tab to the application, and its data to the event log. Reports read the data also if
   * there is neither. Further calls have no effect.
   */
  def attach(context: SparkContext): Unit = Guard.protect("the tab in Spark's UI", ()) {
    if (context.conf.get(SkewConf.UI_ENABLED) && attached.add(context)) {
      context.statusStore.store match {
        case store: ElementTrackingStore =>
          val kept = new ExplainedQueries(context.conf, store)
          context.listenerBus.addToEventLogQueue(new JoinsExplainer(context, kept))
          context.ui.foreach(new SkewextTab(_))
        case _ =>
      }
    }
  }
}

/** Adds the tab to applications of a history server whose logs have data for it. */
private[spark] class SkewextHistoryServerPlugin extends AppHistoryServerPlugin {

  override def createListeners(conf: SparkConf, store: ElementTrackingStore): Seq[SparkListener] =
    Seq(new ExplainedQueries(conf, store))

  override def setupUI(ui: SparkUI): Unit =
    if (ui.store.store.count(classOf[ExplainedQuery]) > 0) new SkewextTab(ui)

  /** After the tab of queries. */
  override def displayOrder: Int = 1
}
