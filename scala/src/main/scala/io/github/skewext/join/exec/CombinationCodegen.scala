package io.github.skewext.join.exec

import io.github.skewext.rows.InputRows

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext
import org.apache.spark.sql.catalyst.expressions.{Expression, UnsafeRow}
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
