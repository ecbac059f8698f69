package io.github.skewext.platform

import java.io.InterruptedIOException
import java.net.SocketTimeoutException
import java.nio.channels.ClosedByInterruptException
import java.util.concurrent.ConcurrentHashMap

import scala.collection.JavaConverters._
import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.SparkException
import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNode
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.internal.SQLConf

/**
 * Keeps a failure of skewext from failing the session. It logs the failure once, and the plan stays
 * unchanged. A `LinkageError` means that the jar was built for another Spark.
 */
object Guard extends Logging {

  private val reported = ConcurrentHashMap.newKeySet[String]()

  /**
   * The failed parts of each session, with the first line of their first error; `explain` prints
   * them.
   */
  private val failedIn =
    new mutable.WeakHashMap[SparkSession, mutable.LinkedHashMap[String, String]]

  def protect[T](what: => String, fallback: => T)(body: => T): T =
    try {
      body
    } catch {
      case e @ (_: LinkageError | NonFatal(_)) if !isCancelled(e) =>
        logOnce(s"skewext: $what failed and is left out.", Some(e))
        SparkSession.getActiveSession.foreach(note(_, what, e))
        fallback
    }

  /** Whether the user has cancelled the query, whose rules may run jobs and read files. */
  private def isCancelled(error: Throwable): Boolean =
    causes(error).exists {
      case _: SocketTimeoutException => false
      // Apache HTTP's ConnectTimeoutException is no SocketTimeoutException.
      case e: InterruptedIOException if e.getClass.getName.endsWith("TimeoutException") => false
      case _: InterruptedException | _: InterruptedIOException | _: ClosedByInterruptException =>
        true
      case e: SparkException => JobCancelled.findFirstIn(String.valueOf(e.getMessage)).isDefined
      case _ => false
    }

  /** The error, what caused it, and so on. */
  def causes(error: Throwable): Iterator[Throwable] =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).take(MostCauses)

  /** An error may be among its own causes. */
  private val MostCauses = 100

  private val JobCancelled = "Job \\d+ cancelled".r

  /** The rule, or one that changes no plan if the class of the rule fails to link. */
  def linked[P <: TreeNode[_]](rule: => Rule[P]): Rule[P] =
    protect[Rule[P]]("loading a rule", UnchangedPlans[P]())(rule)

  /** The strategy, or one that plans nothing. */
  def linkedStrategy(strategy: => SparkStrategy): SparkStrategy =
    protect[SparkStrategy]("loading a strategy", NoPlans)(strategy)

  private case class UnchangedPlans[P <: TreeNode[_]]() extends Rule[P] {
    override def apply(plan: P): P = plan
  }

  private object NoPlans extends SparkStrategy {
    override def apply(plan: LogicalPlan): Seq[SparkPlan] = Nil
  }

  /** The result of `body`; None if a plan is too deep for this thread, which Spark may survive. */
  def shallow[T](what: String)(body: => T): Option[T] =
    try {
      Some(body)
    } catch {
      case _: StackOverflowError =>
        logOnce(s"skewext: a plan is too deep for $what.")
        None
    }

  private def note(session: SparkSession, what: String, error: Throwable): Unit =
    failedIn.synchronized {
      failedIn
        .getOrElseUpdate(session, mutable.LinkedHashMap.empty)
        .getOrElseUpdate(what, firstLine(error))
    }

  private def firstLine(error: Throwable): String = error.toString.split("\n").head

  /** The failures in the session so far: the part that failed, and the first line of its error. */
  def failuresIn(session: SparkSession): Seq[(String, String)] =
    failedIn.synchronized(failedIn.get(session).toSeq.flatten)

  /** The messages about parts that failed to load. */
  def loadFailures: Seq[String] = failures.filter(_.startsWith("skewext: loading ")).toSeq.sorted

  /** The messages logged so far. A failure that changes no answer is visible only here. */
  private[skewext] def failures: Set[String] = reported.asScala.toSet

  def logOnce(message: String, cause: Option[Throwable] = None): Unit =
    if (reported.add(message)) {
      cause match {
        case Some(e) => logWarning(message, e)
        case None => logWarning(message)
      }
    }
}

/** A rule that returns the plan unchanged if it fails, is excluded, or skewext is disabled. */
case class GuardedRule[P <: TreeNode[_]](rule: Rule[P]) extends Rule[P] {
  override val ruleName: String = rule.ruleName

  override def apply(plan: P): P = Guard.protect(s"the rule $ruleName", plan) {
    if (ActiveRules.in(conf).include(rule)) rule(plan) else plan
  }
}

/** Which rules the settings leave on. */
final class ActiveRules private (isEnabled: Boolean, excluded: Seq[String]) {

  def include(rule: Rule[_]): Boolean =
    (isEnabled || rule.isInstanceOf[RunsIfDisabled]) &&
      !RuleName.isOff(excluded, rule.ruleName)
}

object ActiveRules {

  /** @param more names of rules that are excluded besides. */
  def in(conf: SQLConf, more: Seq[String] = Nil): ActiveRules =
    new ActiveRules(SkewConf.enabled(conf), conf.getConf(SkewConf.EXCLUDED_RULES) ++ more)
}

/** A rule that runs even if `spark.skewext.enabled` is false. */
trait RunsIfDisabled

/** A strategy that plans nothing if it fails. */
case class GuardedStrategy(strategy: SparkStrategy) extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] =
    Guard.protect(s"the strategy ${strategy.getClass.getSimpleName}", Seq.empty[SparkPlan])(
      strategy(plan))
}

/**
 * A strategy that has a name as rules have, for `spark.skewext.excludedRules`. [[OwnOperators]] has
 * none: it plans nodes that nothing else can plan.
 */
abstract class NamedStrategy extends SparkStrategy {

  private[skewext] val ruleName: String = getClass.getName.stripSuffix("$")

  protected def isOn: Boolean = {
    val conf = SQLConf.get
    SkewConf.enabled(conf) && !SkewConf.excludes(conf, ruleName)
  }
}
