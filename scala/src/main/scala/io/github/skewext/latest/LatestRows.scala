package io.github.skewext.latest

import io.github.skewext.asof.AsOfColumns
import io.github.skewext.inputs.{BatchInputs, KeyColumn, KeyTypes}
import io.github.skewext.join.UnorderedInputs
import io.github.skewext.platform.HasOperator

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project, UnaryNode}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.SqlInternals

/**
 * One row of each key: the first one in an order. If the order does not decide, the bytes of the
 * rows do. Rows with a null key have a key, too, as in a GROUP BY.
 *
 * @param keys the compared expressions.
 */
case class LatestRows(keys: Seq[Expression], order: Seq[SortOrder], child: LogicalPlan)
    extends UnaryNode
    with HasOperator
    with UnorderedInputs {

  override def output: Seq[Attribute] = child.output

  override def maxRows: Option[Long] = child.maxRows

  override protected lazy val validConstraints: ExpressionSet = child.constraints

  override lazy val distinctKeys: Set[ExpressionSet] = Set(ExpressionSet(keys))

  override def operator(inputs: Seq[SparkPlan]): SparkPlan =
    LatestRowsExec(keys, order, inputs.head)

  override protected def withNewChildInternal(newChild: LogicalPlan): LatestRows =
    copy(child = newChild)
}

/** Builds the logical plan of `latest` from its arguments. */
private[skewext] object LatestRowsBuilder {

  /**
   * @param by the columns whose greatest values make a row the latest, or orders in which it is the
   *           first.
   * @param ties more of these; if None, all other columns.
   */
  def build(
      session: SparkSession,
      input: LogicalPlan,
      keys: Seq[String],
      by: Seq[Expression],
      ties: Option[Seq[Expression]]): LogicalPlan = SqlInternals.withActive(session) {
    BatchInputs.check(Seq(input), "latest")
    if (keys.isEmpty) AsOfColumns.fail("The list of key columns is empty; latest needs a key.")
    if (by.isEmpty) AsOfColumns.fail("The list 'by' is empty; latest needs a column to order by.")
    val resolver = SQLConf.get.resolver
    val columns = keys.map(KeyColumn.of(input, 0, _, resolver))
    val ofColumns = new AsOfColumns(session)
    val (withBy, byOrder) = ofColumns.order(input, Some(by), Nil, "The latest row")()
    val others = columns ++ byOrder.map(_.child).collect { case a: Attribute => a }
    val (below, tieOrder) = ofColumns.order(withBy, ties, others, "Rows that are equally late")()
    val latest = LatestRows(
      columns.flatMap(c => KeyTypes.compared(session, c.name, Seq(c))),
      byOrder ++ tieOrder,
      below)
    if (below eq input) latest else Project(input.output, latest)
  }
}
