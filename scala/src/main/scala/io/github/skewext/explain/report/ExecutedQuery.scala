package io.github.skewext.explain.report

import org.apache.spark.sql.execution.ui.SQLExecutionUIData
import org.apache.spark.sql.skewext.QueryStatus

/** A query that has run: the stages whose tasks are known, and the joins that they ran. */
private[skewext] class ExecutedQuery(status: QueryStatus, query: SQLExecutionUIData) {

  private val plan = status.plan(query.executionId)
  private val values = status.metrics(query.executionId)

  /** Each stage with its joins, the topmost first; empty for a stage without a join. */
  val stages: Seq[(StageTasks, Seq[ExecutedJoin])] = {
    val joins = new JoinStages(plan, values, status.operators)
    query.stages.toSeq.sorted.flatMap(StageTasks.of(status, _)).map { stage =>
      stage -> joins.joinsOf(stage.stage).map(ExecutedJoin.of(_, values))
    }
  }

  def numJoins: Int = plan.allNodes.count(JoinStages.isJoin(_))

  def rules: Seq[AppliedRule] = AppliedRules.of(plan.allNodes.toSeq)
}
