package io.github.skewext.join.optimizer

import io.github.skewext.join.InputRole.Required
import io.github.skewext.join.MultiFullJoin
import io.github.skewext.technique.hint.TechniqueHint

import org.apache.spark.sql.catalyst.expressions.AttributeMap
import org.apache.spark.sql.catalyst.plans.logical.{BROADCAST, HintInfo, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.JOIN
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

/**
 * Broadcasts the inputs that have a broadcast hint, whatever their sizes: Spark's own joins do so, of
 * the multi-way join of the other inputs with each of them.
 * {{{
 * MultiFullJoin [k]                         Project (k, va, vb, vc)
 * :- a (va, required)                       +- Join LEFT OUTER, hint: broadcast c
 * :- b (vb, optional)                 =>       :- MultiFullJoin [k]
 * +- c (vc, optional, hint: broadcast)         :  :- a
 *                                              :  +- b
 *                                              +- c
 * }}}
 * A required input is joined below instead, where Spark's chain would join it before it shuffles.
 *
 * All keys of the result must be keys of the other inputs, so one of those must be required. Where all
 * required inputs have the hint, the [[LargestInput largest]] of them is not broadcast.
 */
object BroadcastHintedInputs extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = {
    MultiFullJoin.markWithHiddenIds(plan)
    plan.transformUpWithPruning(_.containsPattern(JOIN)) {
      case join: MultiFullJoin if join.hints.nonEmpty =>
        val inputs = join.children.indices.filter { i =>
          isHinted(join, i) && obstacle(join, i).isEmpty
        }
        if (inputs.isEmpty || !join.mayBecome(join.children.indices.diff(inputs))) {
          join
        } else {
          val what = TechniqueHint.OfMultiJoin(
            MultiFullJoin.describe(join.keyOutput.map(_.name), join.roles, join.indicator))
          broadcasting(join, inputs, TechniqueHint(what, Some(BROADCAST)))
        }
    }
  }

  /**
   * The same rows by Spark's own joins of the other inputs with each of these, which is broadcast. One
   * of the others must be required: then every key of the result is theirs, in equal columns.
   *
   * A required input that stands before the second of the others is joined with the first, before
   * rows are shuffled: it may have few keys, and Spark's chain does so, too.
   */
  private def broadcasting(join: MultiFullJoin, inputs: Seq[Int], hint: HintInfo): LogicalPlan = {
    val kept = join.children.indices.diff(inputs)
    val first = kept.head
    val early =
      if (join.roles(first) != Required) Nil
      else inputs.filter(i => join.roles(i) == Required && kept.lift(1).exists(i < _))
    val others = if (early.isEmpty) {
      join.joinOf(kept)
    } else {
      val joined =
        early.foldLeft(join.children(first))(join.broadcastTo(_, join.keys(first), _, hint))
      val columns = join.children(first).output ++ early.flatMap(join.valueColumns)
      join.withInputs(join.children.updated(first, Project(columns, joined))).joinOf(kept)
    }
    val shownKeys = others.output.take(join.keyOutput.size)
    val joined = inputs.diff(early).foldLeft(others)(join.broadcastTo(_, shownKeys, _, hint))
    val columns = AttributeMap(joined.output.map(a => a -> a))
    Project(join.output.map(columns), joined)
  }

  /** Why the hint of an input of the operator has no effect; none if there is no hint. */
  def unused(join: MultiFullJoin, i: Int): Option[String] = join.hint(i).map {
    case _ if isHinted(join, i) =>
      obstacle(join, i).getOrElse(if (join.mayBecome(Nil)) s"the rule $ruleName did not run"
      else
        "the join is in a CTE that several references read, or a subquery has a column of an input")
    case hint if hint.strategy.isDefined => "one operator joins all inputs, in its own way"
    case _ => "it is a hint for a join of two inputs"
  }

  private def isHinted(join: MultiFullJoin, i: Int): Boolean =
    join.strategyHint(i).contains(BROADCAST)

  /** Why the input cannot be broadcast. */
  private def obstacle(join: MultiFullJoin, i: Int): Option[String] = {
    val required = join.roles.indices.filter(join.roles(_) == Required)
    lazy val largest = LargestInput.of(join, required)
    if (required.forall(_ == i)) {
      Some("no other input is required, so its keys without a match are in the result")
    } else if (required.forall(isHinted(join, _)) && i == largest) {
      Some("all required inputs have the hint, and it is the largest of them")
    } else if (join.indicator.isDefined) {
      Some("the indicator needs all inputs in one operator")
    } else if (!join.hasExactKeys) {
      Some("keys that are equal may differ, as -0.0 and 0.0")
    } else {
      None
    }
  }
}

/**
 * The largest of some inputs of a join, in rules that run before Spark has made scans of tables of
 * DataSource V2. Such a table would plan a scan without filters to know its size, so the first input
 * is chosen if one of them reads one.
 */
private[optimizer] object LargestInput {

  def of(join: MultiFullJoin, inputs: Seq[Int]): Int =
    if (inputs.exists(join.children(_).exists(_.isInstanceOf[DataSourceV2Relation]))) inputs.head
    else inputs.maxBy(join.children(_).stats.sizeInBytes)
}
