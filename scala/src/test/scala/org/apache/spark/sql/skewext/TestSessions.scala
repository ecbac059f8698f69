package org.apache.spark.sql.skewext

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.{SparkSession, SparkSessionExtensions}

/** What tests reach only from inside Spark. */
object TestSessions {

  /**
   * A session of the same context that knows no extension. Only the primary constructor, which is
   * private, leaves the context's own extensions out.
   */
  def withoutExtensions(session: SparkSession): SparkSession = {
    // A test's session is of a class below the one that a session is of.
    val constructor =
      session.getClass.getSuperclass.getDeclaredConstructors.maxBy(_.getParameterCount)
    constructor.setAccessible(true)
    constructor
      .newInstance(session.sparkContext +: TestShims.partsOfSession: _*)
      .asInstanceOf[SparkSession]
  }

  /** The session that `foreachBatch` gives its batches in. Spark 4 has it in a class of its own. */
  def cloneOf(session: SparkSession): SparkSession =
    session.getClass.getMethod("cloneSession").invoke(session).asInstanceOf[SparkSession]

  /** With a setting of the application, or without it, as if it had been started like that. */
  def withContextConf[T](
      session: SparkSession,
      key: String,
      value: Option[String])(body: => T): T = {
    val conf = session.sparkContext.conf
    val before = conf.getOption(key)
    def set(to: Option[String]): Unit =
      to.fold[Unit](conf.remove(key))(conf.set(key, _))
    set(value)
    try {
      body
    } finally {
      set(before)
    }
  }

  /** The names of all rules that the session's extensions register. */
  def ruleNames(session: SparkSession)(namesOf: PartialFunction[Any, Seq[String]]): Seq[String] = {
    val e = TestShims.extensions(session)
    val rules = e.buildResolutionRules(session) ++ e.buildPostHocResolutionRules(session) ++
      e.buildOptimizerRules(session) ++ e.buildPreCBORules(session) ++
      e.buildRuntimeOptimizerRules(session)
    names(rules, namesOf) ++ physicalRuleNames(session)(namesOf)
  }

  /** The names of those that change physical plans. */
  def physicalRuleNames(session: SparkSession)(
      namesOf: PartialFunction[Any, Seq[String]]): Seq[String] = {
    val e = TestShims.extensions(session)
    val rules = e.buildQueryPostPlannerStrategyRules(session) ++
      e.buildQueryStagePrepRules(session) ++ e.buildQueryStageOptimizerRules(session) ++
      e.buildColumnarRules(session).map(_.preColumnarTransitions)
    names(rules, namesOf)
  }

  private def names(rules: Seq[Rule[_]], of: PartialFunction[Any, Seq[String]]): Seq[String] =
    rules.flatMap(rule => of.applyOrElse(rule, (_: Any) => Seq(rule.ruleName)))

  /**
   * Waits until listeners have heard of all that has happened. Spark waits for one queue after the
   * other, and a listener may post an event into an earlier one.
   */
  def drainEvents(session: SparkSession): Unit = {
    session.sparkContext.listenerBus.waitUntilEmpty()
    session.sparkContext.listenerBus.waitUntilEmpty()
  }

  def optimizerRules(
      extensions: SparkSessionExtensions,
      session: SparkSession): Seq[Rule[LogicalPlan]] = extensions.buildOptimizerRules(session)

  def resolutionRules(
      extensions: SparkSessionExtensions,
      session: SparkSession): Seq[Rule[LogicalPlan]] = extensions.buildResolutionRules(session)
}
