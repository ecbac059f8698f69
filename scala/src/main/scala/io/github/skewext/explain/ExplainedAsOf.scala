package io.github.skewext.explain

import io.github.skewext.asof.MultiAsOfJoin
import io.github.skewext.asof.exec.{AsOfOperator, BroadcastAsOfJoinExec}
import io.github.skewext.latest.LatestRowsExec

import org.apache.spark.sql.catalyst.expressions.{Cast, Expression}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.types.{DateType, TimestampNTZType, TimestampType}

/** Descriptions of as-of joins, and of the latest rows of keys. */
private[skewext] object ExplainedAsOf {

  /** How many columns of an order are listed. By default all columns are in the order. */
  private val MostColumns = 3

  /** The title of the operator, and its execution. */
  def unapply(plan: SparkPlan): Option[(String, Execution)] = plan match {
    case join: AsOfOperator =>
      val isBroadcast = join.isInstanceOf[BroadcastAsOfJoinExec]
      val tables = join.times.tail.zip(join.matches).map { case (time, how) =>
        s"${timeOf(time)} $how"
      }
      val kind = if (isBroadcast) "broadcast table" else "table"
      val number = s"${tables.size} $kind${if (tables.size == 1) "" else "s"}"
      val title = s"${if (join.inner) "inner" else "left"} as-of join with $number on " +
        s"${listed(join.keys.head.map(ExplainedInputs.sql))} at " +
        s"${timeOf(join.times.head)}: ${tables.mkString("; ")}"
      val grouping =
        if (join.groupsByHash) "hash, and a sort of each key by time" else "sort by key and time"
      val nullKeys = if (isBroadcast) "not shuffled" else ExplainedNullKeys.OneTask
      Some((title, ExplainedExecution.of(plan, grouping, nullKeys)))
    case latest: LatestRowsExec =>
      val columns = latest.order.map(o => ExplainedInputs.sql(o.child))
      val shown = columns.take(MostColumns) ++ columns.drop(MostColumns).headOption.map(_ => "...")
      val by = if (shown.isEmpty) "" else s" by ${shown.mkString(", ")}"
      val title = s"latest row of each key ${listed(latest.keys.map(ExplainedInputs.sql))}$by"
      val grouping = if (latest.isSorted) "sorted by key" else "hash"
      Some((title, ExplainedExecution.of(plan, grouping, "one key")))
    case _ => None
  }

  /** The description of an input, with its part in the operator. */
  def named(plan: SparkPlan, input: ExplainedInput): ExplainedInput = plan match {
    case join: AsOfOperator =>
      val node = plan.logicalLink.collect { case node: MultiAsOfJoin => node }
      input.copy(
        hint = node.flatMap(ExplainedInputs.unusedHint(_, input.position)),
        role = Some(if (input.position == 0) "spine" else "versions"),
        key = join.keys(input.position).map(ExplainedInputs.sql))
    case latest: LatestRowsExec => input.copy(key = latest.keys.map(ExplainedInputs.sql))
    case _ => input
  }

  /** A date beside a timestamp matches rows of its own day, which may know less than the version. */
  private def timeOf(time: Expression): String = time match {
    case Cast(date, TimestampType | TimestampNTZType, _, _) if date.dataType == DateType =>
      s"${ExplainedInputs.sql(date)} (a date, compared as midnight at its beginning)"
    case _ => ExplainedInputs.sql(time)
  }

  private def listed(names: Seq[String]): String = names.mkString("[", ", ", "]")
}
