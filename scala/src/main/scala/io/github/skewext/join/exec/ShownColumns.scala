package io.github.skewext.join.exec

import io.github.skewext.platform.LogicalLinks
import io.github.skewext.rows.InputColumn

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.SparkPlan

/**
 * A join that can perform the projection above it, so that rows are built once. The projection may
 * return columns in any order and under any name, and the first of several that is not null, such as
 * the key of a full outer join `USING (k)`. The join claims no order and no partitioning by the names.
 */
trait ShownColumns extends CombinationCodegen with AliasHelper {

  /** The output columns of the projection, if the join performs one. */
  def shown: Option[Seq[NamedExpression]]

  /** All columns that the join can return. */
  protected def allColumns: Seq[Attribute]

  /** The same over [[io.github.skewext.rows.InputRows]]. */
  protected def allColumnExpressions: Seq[Expression]

  protected def withShown(list: Seq[NamedExpression]): SparkPlan

  override def output: Seq[Attribute] = shown.fold(allColumns)(_.map(_.toAttribute))

  override protected def outputColumns: Seq[Expression] =
    shown.fold(allColumnExpressions)(_.map(shownColumn(_).get))

  /** The join with a projection merged into it, if that only selects columns. */
  def showing(projection: Seq[NamedExpression]): Option[SparkPlan] = {
    val list = shown.fold(projection) { before =>
      val aliases = getAliasMap(before)
      projection.map(replaceAliasButKeepName(_, aliases))
    }
    // It keeps the links of the planned join, and does not get those of the projection.
    if (list.forall(shownColumn(_).isDefined)) Some(LogicalLinks.replacing(this)(withShown(list)))
    else None
  }

  private def shownColumn(of: Expression): Option[Expression] = of match {
    case a: Attribute => columnsById.get(a.exprId)
    case Alias(child, _) => shownColumn(child)
    case Coalesce(several) =>
      val columns = several.flatMap(shownColumn).collect { case c: InputColumn => c }
      if (columns.size == several.size) Some(Coalesce(columns)) else None
    case _ => None
  }

  @transient private lazy val columnsById: Map[ExprId, Expression] =
    allColumns.map(_.exprId).zip(allColumnExpressions).toMap
}
