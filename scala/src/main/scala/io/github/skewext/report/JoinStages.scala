package io.github.skewext.report

import org.apache.spark.sql.execution.ui.{SparkPlanGraph, SparkPlanGraphCluster, SparkPlanGraphNode}

/**
 * Which stages of a query ran which of its joins.
 *
 * Nothing that Spark keeps says so for each operator. But the RDDs of a stage have the names of the
 * operators that made them: of a compiled operator that of the code that it is part of, which has a
 * number. Where several operators of a plan have one name, the stage of the slowest task decides, which
 * stands in the text of sizes and times.
 *
 * @param values of the operators' metrics, by the ids of their accumulators
 * @param operators the names that a stage's RDDs have
 */
private[skewext] class JoinStages(
    plan: SparkPlanGraph,
    values: Map[Long, String],
    operators: Int => Set[String]) {

  /** With each join the node that its RDDs are named by. */
  private val joins: Seq[(SparkPlanGraphNode, SparkPlanGraphNode)] = plan.nodes.toSeq.flatMap {
    case compiled: SparkPlanGraphCluster =>
      compiled.nodes.toSeq.filter(JoinStages.isJoin).map(_ -> compiled)
    case node if JoinStages.isJoin(node) => Seq(node -> node)
    case _ => Nil
  }

  private val namesakes: Map[String, Int] =
    plan.nodes.toSeq.groupBy(_.name).map { case (name, nodes) => name -> nodes.size }

  /** The joins that a stage's tasks ran, those above first. */
  def joinsOf(stage: Int): Seq[SparkPlanGraphNode] = {
    val names = operators(stage)
    joins.collect {
      case (join, named)
          if names
            .contains(named.name) && (namesakes(named.name) == 1 || ranIn(stage)(join, named)) =>
        join
    }
  }

  private def ranIn(stage: Int)(nodes: SparkPlanGraphNode*): Boolean = {
    val texts = nodes.flatMap(_.metrics).flatMap(metric => values.get(metric.accumulatorId))
    val stages = texts.flatMap(JoinStages.OfStage.findAllMatchIn(_).map(_.group(1).toInt))
    // A metric that only one task has told tells no stage.
    texts.nonEmpty && (stages.isEmpty || stages.contains(stage))
  }
}

private[skewext] object JoinStages {

  private val OfStage = """stage (\d+)\.\d+: task""".r

  /** By the name, as operators of other extensions are joins as well. */
  def isJoin(name: String): Boolean = name.contains("Join") || name == "CartesianProduct"

  def isJoin(node: SparkPlanGraphNode): Boolean = isJoin(node.name)
}
