package io.github.skewext.technique

import io.github.skewext.technique.hint.TechniqueOptions

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/**
 * A way to plan one of Spark's joins that handles skewed keys. A technique is a function from a
 * logical join to a logical plan. [[PlanSkewJoins]] calls it when the predicates above the join have
 * been pushed down. Spark then optimizes the resulting plan, for example prunes its columns.
 */
trait SkewTechnique {

  /** The name for users. */
  def name: String

  /** The supported options, see [[TechniqueOptions]]. */
  def optionNames: Seq[String] = Nil

  /**
   * The options, plus information that needs a job, such as the hot keys. `skew_join` calls it
   * once.
   */
  def prepared(request: TechniqueRequest): TechniqueOptions = preparedForHint(request)

  /**
   * The same for a join with a hint. It runs each time the query is planned or explained, so it
   * starts no job.
   */
  def preparedForHint(request: TechniqueRequest): TechniqueOptions = request.options

  /** Whether [[plan]] may refuse a join because of its sides. */
  def mayRefuse: Boolean = true

  /**
   * A plan with the rows and the output of `request.join`: the same attributes, in the same order.
   * Its joins are created by `request.joined`, so that `explain` recognizes them.
   */
  def plan(request: TechniqueRequest): Either[TechniqueReason.Detailed, TechniquePlan]
}

/**
 * The plan of a join by a technique.
 *
 * @param how a description for `explain`, such as "the right side is broadcast".
 */
case class TechniquePlan(plan: LogicalPlan, how: String)

/** The list of all techniques. */
object SkewTechniques {

  /** All techniques, in the order of the documentation. */
  val all: Seq[SkewTechnique] = Seq(
    AutoJoin,
    PlainJoin,
    AdaptiveJoin,
    BroadcastJoin,
    BroadcastMapJoin,
    IterativeBroadcastJoin,
    SaltedJoin)

  /** The options that some technique takes. */
  def optionNames: Seq[String] = all.flatMap(_.optionNames).distinct

  def named(name: String): Option[SkewTechnique] = all.find(_.name.equalsIgnoreCase(name))
}
