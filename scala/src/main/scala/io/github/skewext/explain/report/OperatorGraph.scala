package io.github.skewext.explain.report

import org.apache.spark.sql.execution.ui.{SparkPlanGraph, SparkPlanGraphCluster, SparkPlanGraphNode}

/**
 * The operators of a plan that has run, by their place in the plan, with the rows that they count.
 *
 * @param values the values of the operators' metrics, by the ids of their accumulators.
 */
private[skewext] class OperatorGraph(plan: SparkPlanGraph, values: Map[Long, String]) {
  import OperatorGraph._

  private val nodes: Map[Long, SparkPlanGraphNode] =
    plan.allNodes.toSeq.map(node => node.id -> node).toMap

  private val below: Map[Long, Seq[SparkPlanGraphNode]] =
    plan.edges.toSeq.groupBy(_.toId).map { case (id, edges) =>
      id -> edges.map(e => nodes(e.fromId))
    }

  private val above: Map[Long, Seq[SparkPlanGraphNode]] =
    plan.edges.toSeq.groupBy(_.fromId).map { case (id, edges) =>
      id -> edges.map(e => nodes(e.toId))
    }

  /** The operators that give this one its rows, from left to right. */
  def children(node: SparkPlanGraphNode): Seq[SparkPlanGraphNode] =
    below.getOrElse(node.id, Nil).filterNot(isSubquery)

  /** This operator and all below it. */
  def all(node: SparkPlanGraphNode): Seq[SparkPlanGraphNode] =
    node +: children(node).flatMap(all)

  /** The number of rows that an operator returned, by its own metric or by one below it. */
  def rows(node: SparkPlanGraphNode): Option[Long] =
    counted(node).orElse(children(node) match {
      case Seq(child) => rows(child)
      case _ => None
    })

  private def counted(node: SparkPlanGraphNode): Option[Long] =
    node.metrics.toSeq
      .filter(metric => RowMetrics(metric.name))
      .flatMap(metric => values.get(metric.accumulatorId))
      .flatMap(ExecutedJoin.value(_).toOption)
      .headOption

  /** The exchange that an operator reads, with nothing but cheap operators in between. */
  def exchangeBelow(node: SparkPlanGraphNode): Option[SparkPlanGraphNode] =
    if (node.name == Exchange) Some(node)
    else if (!PassRows(node.name)) None
    else children(node).headOption.flatMap(exchangeBelow)

  /** The operators that the same tasks run: no exchange separates them from this one. */
  def sameTasks(node: SparkPlanGraphNode): Set[SparkPlanGraphNode] = {
    def grown(
        known: Set[SparkPlanGraphNode],
        next: Seq[SparkPlanGraphNode]): Set[SparkPlanGraphNode] =
      next.foldLeft(known) { (found, each) =>
        if (found(each) || isSubquery(each) || each.name.endsWith(Exchange)) found
        else grown(found + each, children(each) ++ above.getOrElse(each.id, Nil))
      }
    grown(Set.empty, Seq(node))
  }

  /** The operator whose name the RDDs have: itself, or its generated code. */
  def named(node: SparkPlanGraphNode): SparkPlanGraphNode =
    plan.nodes.toSeq
      .collectFirst { case code: SparkPlanGraphCluster if code.nodes.contains(node) => code }
      .getOrElse(node)
}

private[skewext] object OperatorGraph {

  private val Exchange = "Exchange"

  private val RowMetrics = Set("number of output rows", "shuffle records written")

  /** Operators between an exchange and a join that keep its partitions. */
  private val PassRows = Set("Sort", "Project", "Filter", "ColumnarToRow", "AQEShuffleRead")

  private def isSubquery(node: SparkPlanGraphNode): Boolean = node.name.contains("Subquery")
}
