package io.github.skewext.internal

import java.util.concurrent.ConcurrentHashMap

import scala.collection.JavaConverters._
import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNode
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.{SparkSession, SparkSessionExtensions}

/**
 * Keeps a failure of ours from becoming a failure of the session: what goes wrong is logged once,
 * and the plan stays as it was. A `LinkageError` means that this Spark is not the one the jar was
 * built for.
 */
object Guard extends Logging {

  private val reported = ConcurrentHashMap.newKeySet[String]()

  /** What failed in a session, and how at first; `explain` shows it. */
  private val failedIn =
    new mutable.WeakHashMap[SparkSession, mutable.LinkedHashMap[String, String]]

  /** Whether the running Spark is of the line that the jar was built for, and not too old. */
  def sparkIsSupported: Boolean = SparkLine.isOurs && hasExtensionPoints

  /** Spark 3.5.0 lacks one. Not by its number, which others give to a Spark that has it. */
  private lazy val hasExtensionPoints: Boolean = classOf[SparkSessionExtensions].getMethods
    .exists(_.getName == "injectQueryPostPlannerStrategyRule")

  def protect[T](what: => String, fallback: => T)(body: => T): T =
    try {
      body
    } catch {
      case e @ (_: LinkageError | NonFatal(_)) =>
        logOnce(s"skewext: $what failed and is left out.", Some(e))
        SparkSession.getActiveSession.foreach(note(_, what, e))
        fallback
    }

  private def note(session: SparkSession, what: String, error: Throwable): Unit =
    failedIn.synchronized {
      failedIn
        .getOrElseUpdate(session, mutable.LinkedHashMap.empty)
        .getOrElseUpdate(what, firstLine(error))
    }

  private def firstLine(error: Throwable): String = error.toString.split("\n").head

  /** What failed in the session so far, with the first line of each one's error. */
  def failuresIn(session: SparkSession): Seq[(String, String)] =
    failedIn.synchronized(failedIn.get(session).toSeq.flatten)

  /** What was logged so far. A failure that changes no answer shows nowhere else. */
  private[skewext] def failures: Set[String] = reported.asScala.toSet

  def logOnce(message: String, cause: Option[Throwable] = None): Unit =
    if (reported.add(message)) {
      cause match {
        case Some(e) => logWarning(message, e)
        case None => logWarning(message)
      }
    }
}

/** A rule that leaves the plan as it was when it fails, or is not wanted. */
case class GuardedRule[P <: TreeNode[_]](rule: Rule[P]) extends Rule[P] {
  override val ruleName: String = rule.ruleName
  override def apply(plan: P): P = Guard.protect(s"the rule $ruleName", plan) {
    if (SkewConf.excludes(conf, ruleName)) plan else rule(plan)
  }
}

/** A strategy that plans nothing when it fails. */
case class GuardedStrategy(strategy: SparkStrategy) extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] =
    Guard.protect(s"the strategy ${strategy.getClass.getSimpleName}", Seq.empty[SparkPlan])(
      strategy(plan))
}
