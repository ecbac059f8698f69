package io.github.skewext.explain

import io.github.skewext.join.hint.TechniqueHint
import io.github.skewext.join.probe.{BuildProbeJoinExec, PlanShuffledJoins}

import org.apache.spark.sql.catalyst.plans.logical.Join
import org.apache.spark.sql.execution.joins.{ShuffledHashJoinExec, SortMergeJoinExec}

/** Joins of two sides: how skewext's operator runs them, or why Spark's does. */
private[explain] object ExplainedProbes {

  /**
   * The origin of consecutive joins, if skewext's operator runs one of them, or if there is a reason
   * why it does not.
   *
   * @param off the reason why skewext changes no join, if there is one.
   */
  def originOf(found: PlannedJoin, off: Option[String]): Option[Origin] = {
    val ours = found.joins.collect { case PlannedJoin.Operator(j: BuildProbeJoinExec, _) => j }
    val lefts = found.joins.collect {
      case PlannedJoin.Operator(_: SortMergeJoinExec | _: ShuffledHashJoinExec, Some(join: Join))
          if TechniqueHint.of(join).isEmpty =>
        PlanShuffledJoins.whyNot(join)
    }.flatten
    if (ours.nonEmpty) {
      val reasons = lefts.map(reason => s"; another one stays Spark's: ${reason.text}").distinct
      Some(Origin(Origin.Replaced, ours.map(execution).distinct.mkString("; ") + reasons.mkString))
    } else {
      lefts.headOption
        .filter(_ => off.isEmpty)
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
      spilled
  }

  private def number(tasks: Long): String = if (tasks == 1) "1 task" else s"$tasks tasks"
}
