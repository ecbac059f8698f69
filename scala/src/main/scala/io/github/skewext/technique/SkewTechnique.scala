package io.github.skewext.technique

import io.github.skewext.plan.{TechniqueOptions, TechniqueReason}

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/**
 * A way to do one of Spark's joins that copes with skewed keys. A technique is a function from a
 * logical join to a logical plan: it is called while Spark optimizes a query, so that columns are
 * pruned and conditions pushed through what it makes as through any other plan.
 */
trait SkewTechnique {

  /** What users call it. */
  def name: String

  /** The options that it takes, see [[TechniqueOptions]]. */
  def optionNames: Seq[String] = Nil

  /**
   * The options with whatever takes a job to find out, as the keys that are hot. `skew_join` asks for
   * it once.
   */
  def prepared(request: TechniqueRequest): TechniqueOptions = request.options

  /**
   * The same for a join with a hint, of which it is asked whenever the query is planned or explained:
   * without a job.
   */
  def preparedForHint(request: TechniqueRequest): TechniqueOptions = request.options

  /**
   * A plan with the rows and the output of `request.join`: the same attributes, in the same order.
   * Joins in it come from `request.joined`, so that an explanation knows them.
   */
  def plan(request: TechniqueRequest): Either[TechniqueReason.Detailed, TechniquePlan]
}

/**
 * A join as a technique does it.
 *
 * @param how what is done, for explanations: "the right side is broadcast"
 */
case class TechniquePlan(plan: LogicalPlan, how: String)

/** The one list of techniques. */
object SkewTechniques {

  /** In the order of the documentation. */
  val all: Seq[SkewTechnique] = Seq(
    AutoJoin,
    PlainJoin,
    AdaptiveJoin,
    BroadcastJoin,
    BroadcastMapJoin,
    IterativeBroadcastJoin,
    SaltedJoin)

  def named(name: String): Option[SkewTechnique] = all.find(_.name.equalsIgnoreCase(name))
}
