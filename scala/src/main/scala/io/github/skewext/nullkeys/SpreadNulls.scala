package io.github.skewext.nullkeys

import io.github.skewext.shuffle.ZeroWithoutNulls

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.catalyst.expressions.codegen.{CodeGenerator, CodegenContext, ExprCode, FalseLiteral}
import org.apache.spark.sql.types.{DataType, IntegerType, LongType}

/**
 * A value that partitions rows with a null key, in addition to the key: a hash of `values` and of
 * the map task's number. It is 0 for all other rows. Rows with a null key match nothing, so they
 * may be in any partition. Therefore two of these expressions are equal for Spark if their `keys`
 * are equal. The name keeps plans readable: `hashpartitioning(k, spreadnulls(k), 200)`.
 *
 * Each map task receives this expression, and generates code that computes the partition of a row.
 * To keep that small, it is a single node. The hash of many columns takes much code, and is
 * compiled when the first row with a null key occurs.
 *
 * @param keys the nullable keys.
 * @param isSettled whether the value is 0 in all rows. It is set above the shuffle, where each
 *                  comparison of keys would compute the hash again.
 */
case class SpreadNulls(keys: Seq[Expression], values: Seq[Expression], isSettled: Boolean = false)
    extends ZeroWithoutNulls {

  def settled: SpreadNulls = SpreadNulls(keys, Nil, isSettled = true)

  override lazy val canonicalized: Expression =
    SpreadNulls(keys.map(_.canonicalized), Nil, isSettled = true)

  override def children: Seq[Expression] = keys ++ values
  override def nullable: Boolean = false
  override def dataType: DataType = LongType

  override def eval(row: InternalRow): Any =
    if (!isSettled && keys.exists(_.eval(row) == null)) hash.eval(row) else 0L

  override def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode =
    if (isSettled) {
      Literal(0L).genCode(ctx)
    } else if (ctx.INPUT_ROW != null && ctx.currentVars == null) {
      val is = isWithoutKey.genCode(ctx)
      val spread = ctx.addReferenceObj("spreadNulls", this)
      ev.copy(
        code = code"""
          ${is.code}
          ${CodeGenerator.javaType(dataType)} ${ev.value} =
            ${is.value} ? $spread.ofRow(${ctx.INPUT_ROW}) : 0L;
          """,
        isNull = FalseLiteral)
    } else {
      If(isWithoutKey, hash, Literal(0L)).genCode(ctx)
    }

  private def isWithoutKey: Expression = keys.map(IsNull(_): Expression).reduce(Or)

  @transient private lazy val hash = new XxHash64(values :+ MapTaskId())

  @transient private lazy val compiled = UnsafeProjection.create(hash)

  /** The value for a row with a null key, for generated code. */
  def ofRow(row: InternalRow): Long = compiled(row).getLong(0)

  override def toString: String = keys.mkString("spreadnulls(", ", ", ")")

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[Expression]): SpreadNulls = {
    val (newKeys, newValues) = newChildren.splitAt(keys.size)
    copy(keys = newKeys, values = newValues)
  }
}

object SpreadNulls {
  def isOne(e: Expression): Boolean = e.isInstanceOf[SpreadNulls]
}

/** The number of the map task that writes the row. It stays the same if the task is retried. */
private case class MapTaskId() extends LeafExpression {
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
