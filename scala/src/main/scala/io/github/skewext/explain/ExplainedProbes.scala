package io.github.skewext.explain

import io.github.skewext.join.probe.{BuildProbeJoinExec, PlanShuffledJoins}
import io.github.skewext.platform.Reason

import org.apache.spark.sql.catalyst.plans.FullOuter
import org.apache.spark.sql.catalyst.plans.logical.Join
import org.apache.spark.sql.execution.joins.{ShuffledHashJoinExec, SortMergeJoinExec}

/** Joins of two sides: how skewext's operator runs them, or why Spark's does. */
private[explain] object ExplainedProbes {

  /**
   * The origin of consecutive joins, if skewext's operator runs one of them, or if there is a reason
   * why it does not. None for a join by a technique, which has a reason of its own.
   *
   * @param off the reason why skewext changes no join, if there is one.
   * @param chain the reason why the joins are not one operator.
   */
  def originOf(found: PlannedJoin, off: Option[String], chain: => Origin): Option[Origin] = {
    val ours = found.joins.collect { case PlannedJoin.Operator(j: BuildProbeJoinExec, _) => j }
    val texts = ours.map(execution) ++ found.joins.flatMap(j => ExplainedRanges.of(j.plan))
    val lefts: Seq[Reason] = found.joins.flatMap {
      case PlannedJoin.Operator(_: SortMergeJoinExec | _: ShuffledHashJoinExec, Some(join: Join)) =>
        PlanShuffledJoins.whyNot(join)
      case other => ExplainedRanges.whyNot(other)
    }
    if (JoinOutlines.asksForTechnique(found)) {
      None
    } else if (texts.nonEmpty) {
      val reasons = lefts.map(reason => s"; another one stays Spark's: ${reason.text}").distinct
      val text = texts.distinct.mkString("; ") + reasons.mkString
      // Of other chains, one operator would save no exchange.
      val isFull = ours.size > 1 && ours.exists(_.joinType == FullOuter)
      // The rewrite may run again for the reason, so it is looked for only where it is shown.
      Some(if (isFull) chain else Origin(Origin.Replaced, text)).map {
        case origin if origin.status == Origin.LeftAlone && origin.concerns =>
          origin.copy(Origin.Replaced, s"$text; not one operator: ${origin.text}")
        case _ => Origin(Origin.Replaced, text)
      }
    } else {
      // Another operator for a chain of several joins would save more.
      lefts.headOption
        .filter(_ => off.isEmpty && chain.isShort)
        .map(reason => Origin(Origin.LeftAlone, reason.text, advice = Some(reason.advice)))
    }
  }

  private def execution(join: BuildProbeJoinExec): String = {
    def tasks(name: String): Long = join.metrics(name).value
    val (left, right) = (tasks("numBuiltLeft"), tasks("numBuiltRight"))
    val sides = Seq("left" -> left, "right" -> right).collect {
      case (side, n) if n > 0 => s"$side in ${number(n)}"
    }
    val sorted = tasks("numSorted")
    val built = if (sides.isEmpty) "" else sides.mkString(" (", ", ", ")")
    val spilled =
      if (sorted == 0) ""
      else s"; ${number(sorted)} sorted both sides, because the smaller one did not fit into memory"
    s"each task builds its smaller side$built and streams the other one; the output has no order" +
      spilled + ExplainedRanges.ofKeys(join)
  }

  private def number(tasks: Long): String = if (tasks == 1) "1 task" else s"$tasks tasks"
}
