package io.github.skewext.execution.grouping

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution._
import org.apache.spark.sql.types.DataType

/**
 * One of Spark's scans that gives batches of columns, and what is made of them row by row above it:
 * some of the columns, of rows that fulfil a condition. What Spark compiles into one loop over the
 * rows can be done without making those rows that nobody wants.
 *
 * @param toRows what makes rows of the batches in Spark's plan, for its metrics
 * @param columns those of the rows
 * @param condition over the scan's columns
 * @param filter the node of the condition, for its metric
 */
private[skewext] case class BatchScan(
    scan: FileSourceScanExec,
    toRows: ColumnarToRowExec,
    columns: BatchScan.Columns,
    condition: Option[Expression],
    filter: Option[FilterExec])

private[skewext] object BatchScan {

  /**
   * @param ordinals where each column of the rows is in a batch
   * @param types those of the rows' columns
   */
  case class Columns(ordinals: Seq[Int], types: Seq[DataType]) {
    def rowMaker(): BatchRowMaker = new BatchRowMaker(types.toArray, ordinals.toArray)
  }

  /** None, if there is more above the scan, or a column of a type that is not simple. */
  def of(plan: SparkPlan): Option[BatchScan] = plan match {
    case WholeStageCodegenExec(child) => of(child)
    case rows: ColumnarToRowExec => scanBelow(rows)
    case ProjectExec(list, child) =>
      of(child).flatMap { below =>
        val ordinals = list.map(ordinalIn(child.output, _))
        if (ordinals.contains(-1)) None
        else Some(below.copy(columns = choose(below.columns, ordinals)))
      }
    case filter @ FilterExec(condition, child) if isPlain(condition) =>
      of(child).filter(_.condition.isEmpty).map { below =>
        val bound = BindReferences.bindReference(condition, child.output).transform {
          case b: BoundReference => b.copy(ordinal = below.columns.ordinals(b.ordinal))
        }
        below.copy(condition = Some(bound), filter = Some(filter))
      }
    case _ => None
  }

  private def scanBelow(rows: ColumnarToRowExec): Option[BatchScan] = {
    val columns = Columns(rows.output.indices, rows.output.map(_.dataType))
    def ofScan(scan: FileSourceScanExec): Option[BatchScan] =
      if (columns.types.forall(BatchRowMaker.makes))
        Some(BatchScan(scan, rows, columns, None, None))
      else None
    rows.child match {
      case scan: FileSourceScanExec => ofScan(scan)
      case InputAdapter(scan: FileSourceScanExec) => ofScan(scan)
      case _ => None
    }
  }

  /** What a subquery gives is asked for by the node that has it. */
  private def isPlain(condition: Expression): Boolean =
    condition.deterministic && !condition.exists(_.isInstanceOf[PlanExpression[_]])

  private def choose(columns: Columns, ordinals: Seq[Int]): Columns =
    Columns(ordinals.map(columns.ordinals), ordinals.map(columns.types))

  private def ordinalIn(output: Seq[Attribute], e: Expression): Int = e match {
    case a: Attribute => output.indexWhere(_.exprId == a.exprId)
    case Alias(child: Attribute, _) => ordinalIn(output, child)
    case _ => -1
  }
}
