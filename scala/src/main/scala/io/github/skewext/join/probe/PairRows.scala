package io.github.skewext.join.probe

import io.github.skewext.rows.{InputRows, RowAssembler}
import io.github.skewext.shuffle.{BlockColumn, ColumnBlockRows, ColumnCell}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.catalyst.expressions.codegen.{CodeGenerator, CodegenContext, ExprCode}
import org.apache.spark.sql.catalyst.expressions.{BoundReference, Expression, LeafExpression, UnsafeRow}
import org.apache.spark.sql.types._

/**
 * A row of the left side and one of the right side, either of which may be null. The row of the
 * probe side may be in a block of columns; then its columns are read there, and a row is built only
 * if the output needs one.
 */
final class PairRows(assembler: RowAssembler) extends InputRows(2, assembler) {

  private[this] var block: ColumnBlockRows = _
  private[this] var built = -1

  /** The side whose row is in a block, or -1. */
  var inBlock: Int = -1

  /** The number of the row in its block. */
  var index: Int = 0

  def column(ordinal: Int): BlockColumn = block.column(ordinal)

  /** Sets the block that `show` refers to. */
  def open(rows: ColumnBlockRows): Unit = {
    block = rows
    built = -1
  }

  /** Takes the row of a side from the block. */
  def show(side: Int, row: Int): Unit = {
    inBlock = side
    index = row
    changedFrom(side)
  }

  /** Sets the row of a side that has no row in the block. */
  def show(side: Int, row: UnsafeRow): Unit = {
    rows(side) = row
    if (side == inBlock) inBlock = -1
    changedFrom(side)
  }

  /** Sets the row of one side, and none of the other. */
  def showAlone(side: Int, row: UnsafeRow, matched: Boolean): Unit = {
    show(side, row)
    show(1 - side, null: UnsafeRow)
    exists = matched
  }

  /** The row of a side; null if there is none. A row of the block is built once. */
  def rowOf(side: Int): UnsafeRow = {
    if (side == inBlock) {
      if (index != built) {
        block.rowAt(index)
        built = index
      }
      rows(side) = block.row
    }
    rows(side)
  }

  override def toUnsafeRow: UnsafeRow = {
    if (inBlock >= 0) rowOf(inBlock)
    first = if (rows(0) ne null) 0 else 1
    super.toUnsafeRow
  }
}

/** Column `ordinal` of the row of a side; null if there is no row. */
case class PairColumn(side: Int, ordinal: Int, dataType: DataType, nullable: Boolean)
    extends LeafExpression {

  @transient private lazy val accessor = InternalRow.getAccessor(dataType)

  override def eval(row: InternalRow): Any = {
    val own = row.asInstanceOf[PairRows].rowOf(side)
    if ((own eq null) || own.isNullAt(ordinal)) null else accessor(own, ordinal)
  }

  override def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val javaType = CodeGenerator.javaType(dataType)
    val pairs = classOf[PairRows].getName
    val pair = ctx.freshName("pair")
    val row = ctx.freshName("row")
    val column = ctx.freshName("column")
    val ofRow = CodeGenerator.getValue(row, dataType, ordinal.toString)
    val inBlock = BlockValue.code(dataType, column, s"$pair.index()").map { value =>
      s"""
        if ($pair.inBlock() == $side) {
          ${classOf[BlockColumn].getName} $column = $pair.column($ordinal);
          ${ev.isNull} = $column.hasNulls() && $column.nulls()[$pair.index()] != 0L;
          if (!${ev.isNull}) ${ev.value} = $value;
        } else """
    }
    ev.copy(code = code"""
      $pairs $pair = ($pairs) ${ctx.INPUT_ROW};
      boolean ${ev.isNull};
      $javaType ${ev.value} = ${CodeGenerator.defaultValue(dataType)};
      ${inBlock.getOrElse("")} {
        UnsafeRow $row = $pair.rows()[$side];
        ${ev.isNull} = $row == null || $row.isNullAt($ordinal);
        if (!${ev.isNull}) ${ev.value} = $ofRow;
      }
      """)
  }

  override def toString: String = s"side[$side].column[$ordinal]"
}

object PairColumn {

  /** An expression that is bound to the columns of both sides, over [[PairRows]]. */
  def in(bound: Expression, leftColumns: Int): Expression = bound.transform {
    case BoundReference(i, dataType, nullable) =>
      val side = if (i < leftColumns) 0 else 1
      PairColumn(side, i - side * leftColumns, dataType, nullable)
  }
}

/** A value in a column of a block. */
private[probe] object BlockValue {

  /** The code that reads it; None for types that no block has. */
  def code(dataType: DataType, column: String, row: String): Option[String] = {
    val word = s"$column.words()[$row]"
    def string = s"UTF8String.fromAddress($column.bytes(), $column.starts()[$row], (int) $word)"
    ColumnCell.kindOf(dataType).map { _ =>
      dataType match {
        case BooleanType => s"$word != 0L"
        case ByteType => s"(byte) $word"
        case ShortType => s"(short) $word"
        case IntegerType | DateType | _: YearMonthIntervalType => s"(int) $word"
        case FloatType => s"Float.intBitsToFloat((int) $word)"
        case DoubleType => s"Double.longBitsToDouble($word)"
        case d: DecimalType => s"Decimal.createUnsafe($word, ${d.precision}, ${d.scale})"
        case BinaryType => s"$string.getBytes()"
        case _: StringType => string
        case _ => word
      }
    }
  }
}
