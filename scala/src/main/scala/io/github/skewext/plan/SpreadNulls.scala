package io.github.skewext.plan

import io.github.skewext.internal.ZeroWithoutNulls

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.catalyst.expressions.codegen.{CodeGenerator, CodegenContext, ExprCode, FalseLiteral}
import org.apache.spark.sql.types.{DataType, IntegerType}

/**
 * What rows with a null key are partitioned by besides it, and 0 for all others. Such rows match nothing,
 * so it makes no difference where they are: any two of the same keys are equal to Spark. Also a name, to
 * keep plans readable: `hashpartitioning(k, spreadnulls(k), 200)`.
 */
case class SpreadNulls(child: Expression) extends UnaryExpression with ZeroWithoutNulls {

  /** The same behind the shuffle, where nobody needs to hash a row once more at each comparison. */
  def settled: SpreadNulls = SpreadNulls(child.transform { case _: XxHash64 => Literal(0L) })

  override lazy val canonicalized: Expression = SpreadNulls(settled.child.canonicalized)

  override def nullable: Boolean = child.nullable
  override def dataType: DataType = child.dataType
  override def eval(row: InternalRow): Any = child.eval(row)
  override def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = child.genCode(ctx)
  override def toString: String =
    child.collect { case IsNull(key) => key.toString }.mkString("spreadnulls(", ", ", ")")
  override protected def withNewChildInternal(newChild: Expression): SpreadNulls =
    copy(child = newChild)
}

object SpreadNulls {
  def isOne(e: Expression): Boolean = e.isInstanceOf[SpreadNulls]
}

/** The number of the map task that writes the row; the same when the task runs again. */
case class MapTaskId() extends LeafExpression {
  override def nullable: Boolean = false
  override def dataType: DataType = IntegerType
  override def eval(row: InternalRow): Any = TaskContext.getPartitionId()
  override def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = ev.copy(
    code = code"""
      ${CodeGenerator.javaType(dataType)} ${ev.value} =
        ${classOf[TaskContext].getName}.getPartitionId();
      """,
    isNull = FalseLiteral)
}
