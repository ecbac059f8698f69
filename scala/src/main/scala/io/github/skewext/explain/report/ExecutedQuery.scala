package io.github.skewext.explain.report

import io.github.skewext.explain.{ExplainedJoin, ExplainedSkew}

import org.apache.spark.sql.execution.ui.{SQLExecutionUIData, SparkPlanGraphNode}
import org.apache.spark.sql.skewext.QueryStatus

/**
 * A query that has run: the joins of its stages. Only tasks of stages with a join are read, because
 * each of the others may have 100,000.
 *
 * @param explained what skewext did with the joins; empty for a query of stock Spark
 */
private[skewext] class ExecutedQuery(
    status: QueryStatus,
    query: SQLExecutionUIData,
    explained: Seq[ExplainedJoin]) {

  private val plan = status.plan(query.executionId)
  private val values = status.metrics(query.executionId)

  /** By the id of one of the operator's metrics. */
  private val skews: Map[Long, ExplainedSkew] =
    explained.flatMap(_.skew).flatMap(skew => skew.metric.map(_ -> skew)).toMap

  private val joinStages = {
    val operators = query.stages.map(stage => stage -> status.operators(stage)).toMap
    new JoinStages(plan, values, operators)
  }

  private val (withJoins, others) = {
    val all = query.stages.toSeq.sorted.map(stage => stage -> joinStages.joinsOf(stage))
    all.partition(_._2.nonEmpty)
  }

  /** The stages with joins whose tasks are known, with their joins, the topmost first. */
  val stages: Seq[(StageTasks, Seq[ExecutedJoin])] = withJoins.flatMap { case (stage, joins) =>
    StageTasks.of(status, stage).map(_ -> joins.map(join(_)))
  }

  val settings: QuerySettings = QuerySettings.of(status, query)

  def advice: TaskAdvice = new TaskAdvice(stages, numJoins, settings)

  /** Of each stage, read once from Spark's store. */
  private lazy val attempts = query.stages.map(stage => stage -> status.attempts(stage)).toMap

  /** A later job may list a stage once more, by another number, and skip it. */
  private def hasRun(stage: Int): Boolean = attempts(stage).exists(_.numCompleteTasks > 0)

  private lazy val joins: Seq[(Int, SparkPlanGraphNode)] = withJoins.flatMap {
    case (stage, joins) => if (hasRun(stage)) joins.map(stage -> _) else Nil
  }

  private lazy val work = new QueryWork(
    new OperatorGraph(plan, values),
    joinStages,
    query.stages.toSeq.sorted.filter(hasRun),
    attempts)

  /** The joins of which one stage is certain. */
  private lazy val certain: Seq[(Int, SparkPlanGraphNode)] =
    joins.groupBy(_._2).values.toSeq.flatMap {
      case Seq(only) => Some(only)
      case several =>
        Some(several.filter { case (s, node) => work.reads(s, node) }).collect { case Seq(only) =>
          only
        }
    }

  /** The work of Spark's joins. */
  def joinWork: Seq[JoinWork] =
    certain.flatMap { case (stage, node) => work.join(stage, node, join(node)) }

  /** The work of the stages that run joins, or write their inputs. */
  def stageWork: Seq[StageWork] = work.stagesOf(certain)

  /** The run time of the tasks of the other stages, in milliseconds. */
  val otherMillis: Long =
    others.flatMap { case (stage, _) => status.attempts(stage).map(_.executorRunTime) }.sum

  /** Whether something is known of its tasks. */
  def isKnown: Boolean = stages.nonEmpty || otherMillis > 0

  def numJoins: Int = plan.allNodes.count(JoinStages.isJoin(_))

  private def join(node: SparkPlanGraphNode): ExecutedJoin =
    ExecutedJoin.of(
      node,
      values,
      node.metrics.flatMap(metric => skews.get(metric.accumulatorId)).headOption)
}
