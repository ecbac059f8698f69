package io.github.skewext.explain

import io.github.skewext.platform.{LoadedExtension, SkewConf}
import io.github.skewext.rewrite.RewriteJoinChains
import io.github.skewext.technique.hint.TechniqueHint

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}

/**
 * Outlines of joins: their operators, the reasons for their plans and their splits. An outline has
 * no inputs.
 *
 * @param plansAgain whether to run the rewrite again for a join that lost its reason.
 * @param namesExcluded whether an excluded rule is a reason, which Spark's own EXPLAIN does not show.
 */
private[skewext] class JoinOutlines(
    session: SparkSession,
    plansAgain: Boolean,
    namesExcluded: Boolean = true) {

  private val conf = session.sessionState.conf
  private val loaded = LoadedExtension.isIn(session)

  /** The reason why no join of the session's queries is rewritten, if there is one. */
  val off: Option[String] =
    if (!SkewConf.enabled(conf)) Some(s"${SkewConf.ENABLED.key} is false")
    else if (!loaded) Some(LoadedExtension.Missing)
    else None

  /** The reason why no join is rewritten, of which the rewrite itself knows nothing. */
  private lazy val noRewrite = off.orElse {
    if (namesExcluded) Origins.whyExcluded(conf, RewriteJoinChains.ruleName) else None
  }

  def of(found: PlannedJoin, number: Int): ExplainedJoin = {
    val adaptive = found.adaptive
    val logical = found.joins.head.logical
    val skew = found.joins.flatMap(join => ExplainedSkews.of(join.plan, adaptive, loaded, conf))
    def outline(title: String, origin: Origin, execution: Option[Execution] = None) = ExplainedJoin(
      number,
      found.place,
      title,
      operators = found.joins.map(join => Operators.nameOf(join.plan)),
      origin,
      inputs = Nil,
      execution,
      skew)
    (found.multiJoin, found.broadcast) match {
      case _ if found.asOf.isDefined =>
        val (title, execution) = found.asOf.get
        outline(title, Origins.ofOperator(logical, found.joins.head.plan), Some(execution))
      case (Some(join), _) =>
        outline(
          Operators.describe(join),
          Origins.ofMultiJoin(logical),
          Some(ExplainedExecution.of(join, adaptive.isDefined, conf)))
      case (None, Some(join)) => outline(Operators.describe(join), Origins.ofBroadcast(join))
      case _ =>
        lazy val chain = Origins.ofSparks(found.joins.flatMap(_.logical), noRewrite, plansAgain)
        val ofProbes = ExplainedProbes.originOf(found, off, chain)
        val origin = ExplainedOrJoins.in(found, off, ofProbes.getOrElse(chain))
        val isSplit = skew.exists(_.status == ExplainedSkew.Split)
        outline(
          found.joins.map(Operators.describe(_)).mkString(", "),
          if (isSplit && origin.status == Origin.LeftAlone && !JoinOutlines.asksForTechnique(
              found)) {
            Origins.ofSplit(origin)
          } else {
            origin
          })
    }
  }
}

private[skewext] object JoinOutlines {

  /** Whether the reason of a join is about the technique that the query asks for. */
  def asksForTechnique(found: PlannedJoin): Boolean =
    found.joins.flatMap(_.logical).exists(TechniqueHint.of(_).isDefined)

  /**
   * The joins of a plan; none where skewext is not loaded or is switched off. Spark shows an
   * adaptive plan after each of its changes, so a plan that is running is not rewritten again.
   */
  def of(plan: SparkPlan, session: SparkSession): Seq[ExplainedJoin] = {
    val outlines =
      new JoinOutlines(session, plansAgain = !plan.exists(isRunning), namesExcluded = false)
    if (outlines.off.isDefined) {
      Nil
    } else {
      PlannedJoin.in(plan, _ => None).joins.zipWithIndex.map { case (join, n) =>
        outlines.of(join, n + 1)
      }
    }
  }

  private def isRunning(node: SparkPlan): Boolean = node match {
    case plan: AdaptiveSparkPlanExec =>
      !plan.isFinalPlan && plan.executedPlan.exists(_.isInstanceOf[QueryStageExec])
    case _ => false
  }
}
