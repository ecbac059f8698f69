package io.github.skewext.explain

import java.util.{Collections, IdentityHashMap}

import scala.collection.mutable

import io.github.skewext.asof.MultiAsOfJoin
import io.github.skewext.bucket.files.{BucketedScan, SlicedBucketsExec}
import io.github.skewext.facts.MadeOf
import io.github.skewext.join.exec.MultiJoinExec
import io.github.skewext.join.{JoinOrigin, MultiFullJoin}
import io.github.skewext.latest.LatestRows
import io.github.skewext.shuffle.ColumnarFilterProjectExec
import io.github.skewext.skew.run.KeySketchExec
import io.github.skewext.technique.{MarkedBroadcastJoin, MarkedBroadcastJoinExec}

import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.command.ExecutedCommandExec
import org.apache.spark.sql.execution.exchange.{Exchange, ReusedExchangeExec}
import org.apache.spark.sql.execution.joins.BaseJoinExec

/**
 * A multi-way join, or consecutive Spark joins without a node in between that changes their rows.
 *
 * @param joins the operators, the topmost first.
 * @param inputs the inputs that they join.
 * @param adaptive whether the plan has run; None if it is not adaptive.
 */
private[skewext] case class PlannedJoin(
    joins: Seq[PlannedJoin.Operator],
    inputs: Seq[SparkPlan],
    place: String,
    adaptive: Option[Boolean]) {

  /** The multi-way join, called by name or rewritten, that runs as Spark's broadcast joins. */
  def broadcast: Option[MultiFullJoin] =
    joins.head.logical.flatMap(JoinOrigin.broadcastFrom)

  /** The title and the execution of an as-of join, or of the latest rows of keys. */
  def asOf: Option[(String, Execution)] = ExplainedAsOf.unapply(joins.head.plan)

  /** Our operator, unless it is only the split form of Spark's joins. */
  def multiJoin: Option[MultiJoinExec] = joins.head.plan match {
    case join: MultiJoinExec if PlannedJoin.isMultiJoin(join) => Some(join)
    case _ => None
  }
}

private[skewext] object PlannedJoin {

  /** @param logical the node of the optimized query for which Spark planned the operator. */
  case class Operator(plan: SparkPlan, logical: Option[LogicalPlan])

  /** The split form of Spark's joins has no key columns. */
  def isMultiJoin(join: MultiJoinExec): Boolean = join.keyOutput.nonEmpty

  /**
   * @param joins the joins of the plan, the topmost first.
   * @param gone the number of joins in Spark's initial plan that the current plan lacks.
   * @param scans the scans of bucketed tables, and their places.
   */
  case class Result(joins: Seq[PlannedJoin], gone: Int, scans: Seq[(FileSourceScanExec, String)])

  /** @param planned a function that plans a query in a command without a plan. */
  def in(plan: SparkPlan, planned: LogicalPlan => Option[SparkPlan]): Result = {
    val search = new Search(planned)
    search.visit(plan, Place.Query, None, None)
    Result(search.found.toSeq, search.gone, search.scans.toSeq)
  }

  /** The nodes below a node, including those that Spark hides. */
  def below(node: SparkPlan): Seq[SparkPlan] = node match {
    case adaptive: AdaptiveSparkPlanExec => Seq(adaptive.executedPlan)
    case stage: QueryStageExec => Seq(stage.plan)
    case _ => node.children
  }

  /** Whether the node returns the rows of its child, a subset of them, or some of their columns. */
  private def isBetween(node: SparkPlan): Boolean = node match {
    case _: ReusedExchangeExec => false
    case sort: SortExec => !sort.global
    case MadeOf.Wrapped(_) | _: ProjectExec | _: FilterExec | _: Exchange | _: KeySketchExec |
        _: SlicedBucketsExec | _: ColumnarToRowExec | _: ColumnarFilterProjectExec =>
      true
    case _ => false
  }

  /** The nodes from a child of a join down to an input or to the next join. */
  def pathFrom(child: SparkPlan): Seq[SparkPlan] = Iterator
    .iterate[Option[SparkPlan]](Some(child)) {
      case Some(node) if isBetween(node) => below(node).headOption
      case _ => None
    }
    .takeWhile(_.isDefined)
    .flatten
    .toSeq

  private class Search(planned: LogicalPlan => Option[SparkPlan]) {

    val found: mutable.Buffer[PlannedJoin] = mutable.Buffer.empty

    val scans: mutable.Buffer[(FileSourceScanExec, String)] = mutable.Buffer.empty

    var gone = 0

    // Compare plans by identity: equality compares whole plans. A cached plan may occur more than
    // once.
    private val seen =
      Collections.newSetFromMap(new IdentityHashMap[SparkPlan, java.lang.Boolean])

    /** @param above the join for which the nodes directly above were planned. */
    def visit(
        node: SparkPlan,
        place: String,
        adaptive: Option[Boolean],
        above: Option[LogicalPlan]): Unit =
      if (seen.add(node)) {
        node match {
          case scan @ BucketedScan(_) => scans += ((scan, place))
          case join if isJoin(join) => visitJoins(join, place, adaptive, above)
          case plan: AdaptiveSparkPlanExec =>
            gone += math.max(0, joinsOf(plan.initialPlan) - joinsOf(plan.executedPlan))
            visit(plan.executedPlan, place, Some(plan.isFinalPlan), None)
          case scan: InMemoryTableScanExec =>
            visit(scan.relation.cachedPlan, Place.Cached, None, None)
          case result: CommandResultExec =>
            visit(result.commandPhysicalPlan, Place.Command, None, None)
          case ExecutedCommandExec(command) =>
            command.innerChildren.foreach {
              case query: LogicalPlan =>
                planned(query).foreach(visit(_, Place.Command, None, None))
              case _ =>
            }
          case other =>
            val link = if (isBetween(other)) joinOf(other).orElse(above) else None
            below(other).foreach(visit(_, place, adaptive, link))
        }
        visitSubqueries(node, adaptive)
      }

    private def visitSubqueries(node: SparkPlan, adaptive: Option[Boolean]): Unit =
      node.subqueries.foreach {
        // These subqueries contain the joins of the query whose keys they read.
        case _: SubqueryBroadcastExec | _: SubqueryAdaptiveBroadcastExec | _: ReusedSubqueryExec =>
        case subquery => visit(subquery, Place.Subquery, adaptive, None)
      }

    private def visitJoins(
        top: SparkPlan,
        place: String,
        adaptive: Option[Boolean],
        above: Option[LogicalPlan]): Unit = {
      val joins = Seq.newBuilder[Operator]
      val inputs = Seq.newBuilder[SparkPlan]
      val withSubqueries = Seq.newBuilder[SparkPlan]
      // The node that replaced a split join has its tags, and may be above the new join.
      val first = Operator(top, joinOf(top).orElse(above))
      def madeFrom(join: Operator): Option[MultiFullJoin] =
        join.logical.flatMap(JoinOrigin.broadcastFrom)
      def belongs(join: Operator): Boolean = (madeFrom(first), madeFrom(join)) match {
        case (Some(a), Some(b)) => a eq b
        case (None, None) => true
        case _ => false
      }
      def collect(join: Operator): Unit = {
        seen.add(join.plan)
        joins += join
        join.plan.children.foreach { child =>
          val path = pathFrom(child)
          path.last match {
            case next if isSparks(next) && isSparks(top) && !seen.contains(next) =>
              val operator =
                Operator(next, path.reverseIterator.flatMap(joinOf(_)).toSeq.headOption)
              if (belongs(operator)) {
                withSubqueries ++= path.init
                path.init.foreach(seen.add)
                collect(operator)
              } else {
                inputs += child
              }
            case _ => inputs += child
          }
        }
        withSubqueries += join.plan
      }
      collect(first)
      found += PlannedJoin(joins.result(), inputs.result(), place, adaptive)
      inputs.result().foreach(visit(_, place, adaptive, None))
      // The caller visits the subqueries of the topmost join.
      withSubqueries.result().filterNot(_ eq top).foreach(visitSubqueries(_, adaptive))
    }
  }

  /** The number of joins in a plan. A split may have combined several into one. */
  private def joinsOf(node: SparkPlan): Int = {
    val own = node match {
      case join: MultiJoinExec if !isMultiJoin(join) => join.children.size - 1
      case join if isJoin(join) => 1
      case _ => 0
    }
    own + below(node).map(joinsOf).sum
  }

  private def joinOf(node: SparkPlan): Option[LogicalPlan] = node.logicalLink.filter {
    case _: Join | _: MultiFullJoin | _: MarkedBroadcastJoin | _: MultiAsOfJoin | _: LatestRows =>
      true
    case _ => false
  }

  def isJoin(node: SparkPlan): Boolean = node match {
    case _: MultiJoinExec | _: MarkedBroadcastJoinExec | _: BaseJoinExec => true
    case ExplainedAsOf(_, _) => true
    case _ => false
  }

  /** Whether the node is one of Spark's joins, or its split form. */
  private def isSparks(node: SparkPlan): Boolean = node match {
    case join: MultiJoinExec => !isMultiJoin(join)
    case _: BaseJoinExec => true
    case _ => false
  }
}
