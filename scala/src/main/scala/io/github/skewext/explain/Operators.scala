package io.github.skewext.explain

import io.github.skewext.inputs.NewIds
import io.github.skewext.join.InputRole.{Optional, Required}
import io.github.skewext.join.exec.MultiJoinExec
import io.github.skewext.join.{InputRole, JoinTypeName, MultiFullJoin}
import io.github.skewext.technique.MarkedBroadcastJoinExec

import org.apache.spark.sql.catalyst.expressions.EqualTo
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.joins.BaseJoinExec

/** Descriptions of joins. */
private[skewext] object Operators {

  /** The name without the suffix that Spark and skewext add to that of a split join. */
  def nameOf(join: SparkPlan): String = join.nodeName.takeWhile(_ != '(').trim

  /** For example, `full outer join of 3 inputs on [k]`. */
  def describe(join: MultiFullJoin): String =
    describe(join.roles, NewIds.shownNames(join.keyOutput), join.indicator.map(_.name))

  def describe(join: MultiJoinExec): String =
    describe(join.roles, NewIds.shownNames(join.keyOutput), join.indicator.map(_.name))

  private def describe(
      roles: Seq[InputRole],
      key: Seq[String],
      indicator: Option[String]): String = {
    val kind =
      if (roles.forall(_ == Optional)) "full outer join"
      else if (roles.forall(_ == Required)) "inner join"
      else "join"
    s"$kind of ${roles.size} inputs on ${key.mkString("[", ", ", "]")}" +
      indicator.fold("")(name => s", with indicator $name")
  }

  /** For example, `SortMergeJoin full outer [a = b]`. */
  def describe(operator: PlannedJoin.Operator): String = {
    val (joinType, keys) = operator.plan match {
      case join: BaseJoinExec =>
        val pairs = join.leftKeys.zip(join.rightKeys).map { case (l, r) => EqualTo(l, r) }
        (JoinTypeName.lower(join.joinType), pairs ++ join.condition)
      case join: MarkedBroadcastJoinExec =>
        val pairs = join.keys(0).zip(join.keys(1)).map { case (l, s) => EqualTo(l, s) }
        (JoinTypeName.lower(join.joinType), pairs)
      case join: MultiJoinExec =>
        val pairs = join.keys.tail.flatMap(_.zip(join.keys.head).map { case (r, l) =>
          EqualTo(l, r)
        })
        (operator.logical.fold("")(logicalType), pairs)
    }
    val on = if (keys.isEmpty) "" else keys.map(ExplainedInputs.sql).mkString(" [", ", ", "]")
    Seq(nameOf(operator.plan), joinType).filter(_.nonEmpty).mkString(" ") + on
  }

  private def logicalType(plan: LogicalPlan): String = plan match {
    case join: Join => JoinTypeName.lower(join.joinType)
    case _ => ""
  }
}
