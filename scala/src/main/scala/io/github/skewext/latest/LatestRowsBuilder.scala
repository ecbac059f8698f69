package io.github.skewext.latest

import io.github.skewext.asof.AsOfColumns
import io.github.skewext.inputs.{BatchInputs, KeyColumn, KeyTypes}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.skewext.SqlInternals

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
