package io.github.skewext.shuffle

import io.github.skewext.facts.{EvaluatedInTurn, KeepsStableRows, MadeOf, PartitionwiseOperator}
import io.github.skewext.platform.LogicalLinks

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, Expression, IsNotNull, PredicateHelper, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.types.{ArrayType, DataType, Decimal, MapType, StructType, UserDefinedType}
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarArray, ColumnarBatch, ColumnarMap}
import org.apache.spark.unsafe.types.UTF8String

/**
 * Selects columns or rows of batches, as a projection or filter does for rows. It copies no value:
 * the columns that it returns contain the indices of the selected rows.
 *
 * @param condition selects the rows; None for all
 */
case class ColumnarFilterProjectExec(
    output: Seq[Attribute],
    condition: Option[Expression],
    child: SparkPlan)
    extends UnaryExecNode
    with KeepsStableRows
    with PartitionwiseOperator {

  override def passesColumns: Boolean = true

  override def madeOf: Seq[MadeOf.Part] =
    Seq(MadeOf.Part(child, linear = true, inOrder = true))

  override def supportsColumnar: Boolean = child.supportsColumnar

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override def outputOrdering: Seq[SortOrder] = child.outputOrdering

  override lazy val metrics: Map[String, SQLMetric] =
    Map("numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"))

  /** The node of Spark that returns the same rows. */
  def ofRows(child: SparkPlan): SparkPlan =
    condition.fold[SparkPlan](ProjectExec(output, child))(FilterExec(_, child))

  override protected def doExecuteColumnar(): RDD[ColumnarBatch] = {
    // The closure must not contain the plan.
    val (input, filter, numOutputRows) = (child.output, condition, longMetric("numOutputRows"))
    val places = output.map(column => input.indexWhere(_.exprId == column.exprId)).toArray
    val required = filter.flatMap(ColumnarFilterProjectExec.required(_, input))
    child.executeColumnar().mapPartitionsWithIndex { (task, batches) =>
      val predicate = filter.map(EvaluatedInTurn.predicate(_, input))
      predicate.foreach(_.initialize(task))
      var rows = new Array[Int](0)
      batches.map { batch =>
        var count = batch.numRows
        val selectsAll = required.exists(_.forall(!batch.column(_).hasNull))
        predicate.filterNot(_ => selectsAll).foreach { p =>
          if (rows.length < batch.numRows) rows = new Array[Int](batch.numRows)
          count = ColumnarFilterProjectExec.select(batch, p.eval, rows)
        }
        numOutputRows += count
        val columns = places.map(batch.column)
        if (count == batch.numRows) new ColumnarBatch(columns, count)
        else new ColumnarBatch(columns.map(new SelectedColumn(_, rows, count)), count)
      }
    }
  }

  override protected def doExecute(): RDD[InternalRow] = ColumnarToRowExec(this).execute()

  override protected def withNewChildInternal(newChild: SparkPlan): ColumnarFilterProjectExec =
    copy(child = newChild)
}

object ColumnarFilterProjectExec extends PredicateHelper {

  /**
   * Replaces a node that only drops rows or columns.
   *
   * @param below returns the replacement of its child.
   */
  def insteadOf(
      node: SparkPlan)(below: SparkPlan => SparkPlan): Option[ColumnarFilterProjectExec] = {
    val select = node match {
      case ProjectExec(list, child) if list.forall(_.isInstanceOf[Attribute]) =>
        Some(ColumnarFilterProjectExec(node.output, None, below(child)))
      case FilterExec(condition, child) if condition.deterministic && !readNested(Seq(condition)) =>
        Some(ColumnarFilterProjectExec(node.output, Some(condition), below(child)))
      case _ => None
    }
    select.map(LogicalLinks.replacing(node)(_))
  }

  /**
   * Whether expressions read a nested column. The arrays, maps and structs of a batch return 0 for a
   * null, unless one asks first whether it is a null. Generated code asks, interpreted expressions
   * do not. So these are evaluated on rows.
   */
  private[skewext] def readNested(expressions: Seq[Expression]): Boolean =
    AttributeSet(expressions).exists(column => isNested(column.dataType))

  private def isNested(dataType: DataType): Boolean = dataType match {
    case _: ArrayType | _: MapType | _: StructType => true
    case udt: UserDefinedType[_] => isNested(udt.sqlType)
    case _ => false
  }

  /** The columns of which a condition requires that they are not null, if it requires nothing else. */
  private def required(condition: Expression, input: Seq[Attribute]): Option[Seq[Int]] = {
    val each = splitConjunctivePredicates(condition).map {
      case IsNotNull(column: Attribute) => input.indexWhere(_.exprId == column.exprId)
      case _ => -1
    }
    if (each.contains(-1)) None else Some(each)
  }

  /** Stores the indices of the selected rows in an array. Returns their number. */
  private def select(batch: ColumnarBatch, wanted: InternalRow => Boolean, to: Array[Int]): Int = {
    var (row, count) = (0, 0)
    while (row < batch.numRows) {
      if (wanted(batch.getRow(row))) {
        to(count) = row
        count += 1
      }
      row += 1
    }
    count
  }
}

/**
 * The values of a column in the selected rows. Valid as long as that column, whose creator closes
 * it.
 */
private final class SelectedColumn(column: ColumnVector, rows: Array[Int], count: Int)
    extends ColumnVector(column.dataType) {

  override def close(): Unit = ()
  override def hasNull: Boolean = column.hasNull
  override def numNulls: Int = (0 until count).count(isNullAt)
  override def isNullAt(row: Int): Boolean = column.isNullAt(rows(row))
  override def getBoolean(row: Int): Boolean = column.getBoolean(rows(row))
  override def getByte(row: Int): Byte = column.getByte(rows(row))
  override def getShort(row: Int): Short = column.getShort(rows(row))
  override def getInt(row: Int): Int = column.getInt(rows(row))
  override def getLong(row: Int): Long = column.getLong(rows(row))
  override def getFloat(row: Int): Float = column.getFloat(rows(row))
  override def getDouble(row: Int): Double = column.getDouble(rows(row))
  override def getArray(row: Int): ColumnarArray = column.getArray(rows(row))
  override def getMap(row: Int): ColumnarMap = column.getMap(rows(row))
  override def getUTF8String(row: Int): UTF8String = column.getUTF8String(rows(row))
  override def getBinary(row: Int): Array[Byte] = column.getBinary(rows(row))

  override def getDecimal(row: Int, precision: Int, scale: Int): Decimal =
    column.getDecimal(rows(row), precision, scale)

  // Only structs and intervals have children, and no columnar exchange has these types. The method
  // is public from Spark 4 on.
  override def getChild(ordinal: Int): ColumnVector =
    throw new UnsupportedOperationException
}
