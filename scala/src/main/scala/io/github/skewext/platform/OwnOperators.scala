package io.github.skewext.platform

import org.apache.spark.broadcast.Broadcast
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.{JOIN, TreePattern}
import org.apache.spark.sql.execution.adaptive.{BroadcastQueryStageExec, LogicalQueryStage}
import org.apache.spark.sql.execution.{LeafExecNode, SparkPlan, SparkStrategy}

/** A logical node of skewext. */
trait OwnNode extends LogicalPlan {

  /**
   * By it the rules of skewext find the node, and skip plans without one. It activates no rule of
   * Spark's, as they match the classes of Spark's joins.
   */
  override protected val nodePatterns: Seq[TreePattern] = Seq(JOIN)
}

/** A logical node of skewext that nothing but its own operator can execute. */
trait HasOperator extends OwnNode {

  /** @param inputs the plans of the children */
  def operator(inputs: Seq[SparkPlan]): SparkPlan

  /** Plans the children. `later` plans one as it is, after this node. */
  def plannedInputs(later: LogicalPlan => SparkPlan): Seq[SparkPlan] = children.map(later)
}

/** Plans such nodes. */
object OwnOperators extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case node: HasOperator => node.operator(node.plannedInputs(later)) :: Nil
    case _ => Nil
  }

  /** Plans an input of an operator of skewext. */
  private[skewext] def later(input: LogicalPlan): SparkPlan = input match {
    // Without the extension's rules nothing puts it back.
    case LogicalQueryStage(_, stage: BroadcastQueryStageExec)
        if LoadedExtension.isIn(stage.session) =>
      stage.setLogicalLink(input)
      LogicalLinks.wrapping(stage)(BegunBroadcast(stage))
    case other => planLater(other)
  }
}

/**
 * Stands for a broadcast that has begun when adaptive execution plans again. To Spark, a plan with
 * such a stage below another join than its own is invalid, and the whole query keeps its old plan.
 */
case class BegunBroadcast(stage: BroadcastQueryStageExec) extends LeafExecNode {
  override def output: Seq[Attribute] = stage.output
  override def outputPartitioning: Partitioning = stage.outputPartitioning
  override protected def doExecute(): RDD[InternalRow] = stage.execute()
  override def doExecuteBroadcast[T](): Broadcast[T] = stage.executeBroadcast()
}

/** Puts the broadcasts that have begun back into the plan, after Spark has validated it. */
object RestoreBegunBroadcasts extends Rule[SparkPlan] {
  override def apply(plan: SparkPlan): SparkPlan =
    if (!plan.exists(_.isInstanceOf[BegunBroadcast]) || SkewConf.excludes(conf, ruleName)) plan
    else plan.transform { case BegunBroadcast(stage) => stage }
}

/**
 * A node that stays as it is when it is made canonical again. The columns that it makes or hides have
 * ids by their positions in the original, which a second time would be taken for those of its inputs.
 */
private[skewext] trait CanonicalOnce[P <: QueryPlan[P]] extends QueryPlan[P] { self: P =>
  override protected def doCanonicalize(): P =
    if (isCanonicalizedPlan) this else super.doCanonicalize()
}
