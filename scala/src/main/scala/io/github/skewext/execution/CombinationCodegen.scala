package io.github.skewext.execution

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext
import org.apache.spark.sql.catalyst.expressions.{Expression, UnsafeRow}
import org.apache.spark.sql.execution.{CodegenSupport, InputAdapter, SparkPlan, WholeStageCodegenExec}

/**
 * Lets the operators above a join read its columns where they stand, in the rows of the inputs: a
 * filter or an aggregate looks at the columns it wants, and no row is made in between. Generated code
 * is the consumer here only; what comes from the inputs are rows, as for a sort-merge join.
 */
private[skewext] trait CombinationCodegen extends SparkPlan with CodegenSupport {

  /** The join's output, as an RDD of [[InputRows]]. */
  protected def combinations: RDD[InternalRow]

  /** Over [[InputRows]]. */
  protected def outputColumns: Seq[Expression]

  /**
   * A child that generates code would be made part of the same function. Where exchanges are the
   * children there is none; a sorted or a bucketed input has one.
   */
  override def supportCodegen: Boolean = children.forall {
    // Put there by Spark to separate a child from us.
    case _: InputAdapter => true
    case child: CodegenSupport => !child.supportCodegen
    case _ => true
  }

  override def inputRDDs(): Seq[RDD[InternalRow]] = Seq(combinations)

  override def needCopyResult: Boolean = false

  // To a limit above, this is where rows come from.
  override protected def canCheckLimitNotReached: Boolean = true

  override protected def doProduce(ctx: CodegenContext): String = {
    // Names of variables would begin with that of the node, which may say more than one word.
    ctx.freshNamePrefix = "multiFullJoin"
    val input = ctx.addMutableState(
      "scala.collection.Iterator",
      "input",
      variable => s"$variable = inputs[0];",
      forceInline = true)
    val combination = ctx.freshName("combination")
    val inputRows = classOf[InputRows].getName
    val consumed = parent match {
      case _: WholeStageCodegenExec =>
        // Nobody reads a column: all that is wanted is a row.
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
