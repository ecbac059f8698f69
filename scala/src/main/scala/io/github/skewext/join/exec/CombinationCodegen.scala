package io.github.skewext.join.exec

import io.github.skewext.platform.LogicalLinks
import io.github.skewext.rows.{InputColumn, InputRows}

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext
import org.apache.spark.sql.execution.{CodegenSupport, InputAdapter, SparkPlan, WholeStageCodegenExec}

/**
 * Whole-stage code generation in which operators above a join read its columns in the rows of the
 * inputs. A combination has one row of each input. A filter or an aggregate above reads only the
 * columns that it uses, and no output row is built in between. Only the operators above are
 * generated code. The inputs return rows, as for a sort-merge join.
 */
private[skewext] trait CombinationCodegen extends SparkPlan with CodegenSupport {

  /** The output rows, or the [[InputRows]] from which they are built. */
  protected def joined(makesRows: Boolean): RDD[InternalRow]

  override protected def doExecute(): RDD[InternalRow] = joined(makesRows = true)

  /** The class of the [[InputRows]]. */
  protected def combinationClass: Class[_ <: InputRows] = classOf[InputRows]

  /** The output's columns, over [[InputRows]]. */
  protected def outputColumns: Seq[Expression]

  /**
   * False if a child generates code, because that would become part of the same function. An
   * exchange generates none, but a sorted or a bucketed input does.
   */
  override def supportCodegen: Boolean = children.forall {
    // Spark inserts it to separate a child's code.
    case _: InputAdapter => true
    case child: CodegenSupport => !child.supportCodegen
    case _ => true
  }

  override def inputRDDs(): Seq[RDD[InternalRow]] = Seq(joined(makesRows = false))

  override def needCopyResult: Boolean = false

  // For a limit above, this node is the source of rows.
  override protected def canCheckLimitNotReached: Boolean = true

  override protected def doProduce(ctx: CodegenContext): String = {
    // Variable names would begin with the name of the node, which may contain several words.
    ctx.freshNamePrefix = "multiFullJoin"
    val input = ctx.addMutableState(
      "scala.collection.Iterator",
      "input",
      variable => s"$variable = inputs[0];",
      forceInline = true)
    val combination = ctx.freshName("combination")
    val inputRows = combinationClass.getName
    val consumed = parent match {
      case _: WholeStageCodegenExec =>
        // No operator reads a column, and the parent needs only a row.
        val row = ctx.freshName("row")
        s"""
           |${classOf[UnsafeRow].getName} $row = $combination.toUnsafeRow();
           |${consume(ctx, null, row)}
         """.stripMargin
      case _ =>
        ctx.INPUT_ROW = combination
        ctx.currentVars = null
        consume(ctx, outputColumns.map(_.genCode(ctx)))
    }
    s"""
       |while ($limitNotReachedCond $input.hasNext()) {
       |  $inputRows $combination = ($inputRows) $input.next();
       |  ${consumed.trim}
       |  $shouldStopCheckCode
       |}
     """.stripMargin
  }
}

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
