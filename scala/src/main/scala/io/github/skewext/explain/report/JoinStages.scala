package io.github.skewext.explain.report

import org.apache.spark.sql.execution.ui.{SparkPlanGraph, SparkPlanGraphCluster, SparkPlanGraphNode}

/**
 * Finds the stages that ran the joins of a query.
 *
 * Spark does not store the stage of an operator. But the RDDs of a stage have the names of the
 * operators that created them. For an operator in whole-stage generated code, that is the numbered
 * name of the code. If several operators of a plan have one name, the stage of the slowest task
 * decides, which the text of size and time metrics contains.
 *
 * @param values the values of the operators' metrics, by the ids of their accumulators.
 * @param operators a function from a stage to the names of its RDDs.
 */
private[skewext] class JoinStages(
    plan: SparkPlanGraph,
    values: Map[Long, String],
    operators: Int => Set[String]) {

  /** Each join, with the node whose name its RDDs have. */
  private val joins: Seq[(SparkPlanGraphNode, SparkPlanGraphNode)] = plan.nodes.toSeq.flatMap {
    case compiled: SparkPlanGraphCluster =>
      compiled.nodes.toSeq.filter(JoinStages.isJoin).map(_ -> compiled)
    case node if JoinStages.isJoin(node) => Seq(node -> node)
    case _ => Nil
  }

  private val namesakes: Map[String, Int] =
    plan.nodes.toSeq.groupBy(_.name).map { case (name, nodes) => name -> nodes.size }

  /** The joins that the tasks of a stage ran, the topmost first. */
  def joinsOf(stage: Int): Seq[SparkPlanGraphNode] = {
    val names = operators(stage)
    joins.collect {
      case (join, named)
          if names
            .contains(named.name) && (namesakes(named.name) == 1 || ranIn(stage)(join, named)) =>
        join
    }
  }

  /**
   * The stage that wrote the rows of an exchange.
   *
   * @param below the operators below the exchange whose names RDDs have.
   * @param stages the stages of the query.
   */
  def writerOf(
      exchange: SparkPlanGraphNode,
      below: Seq[SparkPlanGraphNode],
      stages: Seq[Int]): Option[Int] = {
    // Its other metrics are those of the stage that reads it.
    val written = exchange.metrics.toSeq.filter(metric => JoinStages.Written(metric.name))
    val named = stagesIn(written.flatMap(metric => values.get(metric.accumulatorId))).distinct
    def byNames = stages.filter { stage =>
      below.exists(node => namesakes.get(node.name).contains(1) && operators(stage)(node.name))
    }
    Some(if (named.isEmpty) byNames else named).collect { case Seq(stage) => stage }
  }

  private def stagesIn(texts: Seq[String]): Seq[Int] =
    texts.flatMap(JoinStages.OfStage.findAllMatchIn(_).map(_.group(1).toInt))

  private def ranIn(stage: Int)(nodes: SparkPlanGraphNode*): Boolean = {
    val texts = nodes.flatMap(_.metrics).flatMap(metric => values.get(metric.accumulatorId))
    val stages = stagesIn(texts)
    // A metric that a single task has updated has no stage in its text.
    texts.nonEmpty && (stages.isEmpty || stages.contains(stage))
  }
}

private[skewext] object JoinStages {

  private val OfStage = """stage (\d+)\.\d+: task""".r

  private val Written = Set("data size", "shuffle bytes written", "shuffle write time")

  /**
   * By the name, because operators of other extensions are joins, too. Only by its first word, because
   * the name of a scan ends with that of its table.
   */
  def isJoin(name: String): Boolean =
    name.takeWhile(_ != ' ').contains("Join") || name == "CartesianProduct"

  def isJoin(node: SparkPlanGraphNode): Boolean = isJoin(node.name)
}
