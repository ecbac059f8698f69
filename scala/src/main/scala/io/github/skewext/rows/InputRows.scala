package io.github.skewext.rows

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.catalyst.expressions.codegen.{CodeGenerator, CodegenContext, ExprCode, FalseLiteral}
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, LeafExpression, UnsafeRow}
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types.{BooleanType, DataType}

/**
 * One combination: a row of every input, or null. The output's projection reads it. It is a row
 * only because projections take rows. The expressions below read its fields.
 */
class InputRows(numInputs: Int, assembler: RowAssembler)
    extends GenericInternalRow(Array.empty[Any]) {

  /** The first input whose row differs from the one in the last output row. */
  private[this] var changed = 0

  /** The output row; the next call overwrites it. */
  def toUnsafeRow: UnsafeRow = {
    val row = assembler(this, changed)
    changed = numInputs
    row
  }

  /** Must be called before the rows are read: the inputs from this one on have other rows now. */
  def changedFrom(input: Int): Unit = if (input < changed) changed = input

  /** The row of each input, null if the input lacks the key. */
  val rows = new Array[UnsafeRow](numInputs)

  /** The first input that has the key. */
  var first: Int = 0

  /** The positions of the inputs that have the key; set only if the output contains them. */
  var indicator: ArrayData = _

  /** Of an existence join: whether the row of the left side has a match. */
  var exists = false
}

/** Column `ordinal` of one input's row; null if the input lacks the key. */
case class InputColumn(input: Int, ordinal: Int, dataType: DataType, nullable: Boolean)
    extends LeafExpression {

  @transient private lazy val accessor = InternalRow.getAccessor(dataType)

  override def eval(combination: InternalRow): Any = {
    val row = combination.asInstanceOf[InputRows].rows(input)
    if ((row eq null) || row.isNullAt(ordinal)) null else accessor(row, ordinal)
  }

  override def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val row = ctx.freshName("row")
    val get = CodeGenerator.getValue(row, dataType, ordinal.toString)
    val javaType = CodeGenerator.javaType(dataType)
    ev.copy(code = code"""
      UnsafeRow $row = ((${classOf[InputRows].getName}) ${ctx.INPUT_ROW}).rows()[$input];
      boolean ${ev.isNull} = $row == null || $row.isNullAt($ordinal);
      $javaType ${ev.value} = ${ev.isNull} ? ${CodeGenerator.defaultValue(dataType)} : $get;
      """)
  }

  override def toString: String = s"input[$input].column[$ordinal]"
}

/**
 * A key column: its value in the first input that has the key.
 *
 * @param ordinals the ordinal of the column in each input
 */
case class FirstPresentColumn(ordinals: Seq[Int], dataType: DataType, nullable: Boolean)
    extends LeafExpression {

  @transient private lazy val accessor = InternalRow.getAccessor(dataType)

  override def eval(combination: InternalRow): Any = {
    val rows = combination.asInstanceOf[InputRows]
    val row = rows.rows(rows.first)
    val ordinal = ordinals(rows.first)
    if (row.isNullAt(ordinal)) null else accessor(row, ordinal)
  }

  override def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val positions = ctx.addReferenceObj("ordinals", ordinals.toArray, "int[]")
    val rows = ctx.freshName("rows")
    val row = ctx.freshName("row")
    val ordinal = ctx.freshName("ordinal")
    val get = CodeGenerator.getValue(row, dataType, ordinal)
    val javaType = CodeGenerator.javaType(dataType)
    val combination = classOf[InputRows].getName
    ev.copy(code = code"""
      $combination $rows = ($combination) ${ctx.INPUT_ROW};
      UnsafeRow $row = $rows.rows()[$rows.first()];
      int $ordinal = $positions[$rows.first()];
      boolean ${ev.isNull} = $row.isNullAt($ordinal);
      $javaType ${ev.value} = ${ev.isNull} ? ${CodeGenerator.defaultValue(dataType)} : $get;
      """)
  }

  override def toString: String = s"first present of ${ordinals.mkString("column[", ", ", "]")}"
}

/** The positions of the inputs that have the key. */
case class IndicatorColumn(dataType: DataType) extends LeafExpression {

  override def nullable: Boolean = false

  override def eval(combination: InternalRow): Any = combination.asInstanceOf[InputRows].indicator

  override def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val combination = classOf[InputRows].getName
    ev.copy(
      code = code"""
        ArrayData ${ev.value} = (($combination) ${ctx.INPUT_ROW}).indicator();
        """,
      isNull = FalseLiteral)
  }
}

/** Whether the left row of an existence join has a match. */
case object ExistsColumn extends LeafExpression {
  override def dataType: DataType = BooleanType
  override def nullable: Boolean = false
  override def eval(row: InternalRow): Any = row.asInstanceOf[InputRows].exists

  override def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = ev.copy(
    code = code"""
      boolean ${ev.value} = ((${classOf[InputRows].getName}) ${ctx.INPUT_ROW}).exists();
      """,
    isNull = FalseLiteral)
}
