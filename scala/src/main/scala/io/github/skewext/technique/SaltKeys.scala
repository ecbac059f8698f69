package io.github.skewext.technique

import io.github.skewext.platform.HasOperator

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.BuildSide
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.types.IntegerType

/** The rows that a side of a salted join returns for a hot key. */
sealed trait HotRows

object HotRows {

  /** The rows of the side. */
  case object Shown extends HotRows

  /**
   * The rows of the side, and markers: each task with rows of the key adds one marker to the first
   * part. The marker shows the first copy of a row of the other side that a match exists, perhaps
   * only in another cell.
   */
  case object ShownAndMarked extends HotRows

  /** Only the markers. They are sufficient if the number of rows does not matter. */
  case object Marked extends HotRows
}

/**
 * Adds to each row of one side its cells in a salted join, see [[SaltedKey]]. A join on the keys
 * and the cell brings every pair of rows with equal keys together once.
 *
 * The cell of a row depends on the number of its task. It also depends on the row's content if that
 * is stable. So a retried task returns the same rows for each cell.
 *
 * @param nullCells the number of cells that rows with a null key are spread over; 0 drops such
 *                  rows, because they match nothing and the join does not return them.
 * @param cell the cell of a row, negative for rows with a null key.
 * @param kind if defined, a column with [[SaltKeys.First]], [[SaltKeys.Further]] or
 *             [[SaltKeys.Marker]].
 */
case class SaltKeys(
    keys: Seq[Expression],
    side: BuildSide,
    hot: Seq[SaltedKey],
    hotRows: HotRows,
    nullCells: Int,
    cell: Attribute,
    kind: Option[Attribute],
    child: LogicalPlan)
    extends UnaryNode
    with HasOperator {

  override def output: Seq[Attribute] = SaltKeys.output(child.output, keys, hotRows, cell, kind)

  override def producedAttributes: AttributeSet = AttributeSet(cell +: kind.toSeq)

  /** Markers have nulls in all columns except those of the key. */
  override protected lazy val validConstraints: ExpressionSet =
    if (hotRows == HotRows.Shown) {
      child.constraints
    } else {
      val ofKeys = SaltKeys.keyColumns(keys)
      child.constraints.filter(_.references.subsetOf(ofKeys))
    }

  /** Unknown, because rows are copied. */
  override def maxRows: Option[Long] = None

  override protected def stringArgs: Iterator[Any] = SaltKeys.stringArgs(keys, side, hot, hotRows)

  /** Adds the salts. The join on them is Spark's. */
  override def operator(inputs: Seq[SparkPlan]): SparkPlan =
    SaltKeysExec(keys, side, hot, hotRows, nullCells, cell, kind, inputs.head)

  override protected def withNewChildInternal(newChild: LogicalPlan): SaltKeys =
    copy(child = newChild)
}

object SaltKeys {

  /** A row without copies, or the first copy of a row. */
  val First = 0

  /** Another copy of a row. */
  val Further = 1

  /** Not a row: it shows that the side has rows of the key. */
  val Marker = -1

  /** Creates the cell column of a side. */
  def newCell(): Attribute =
    AttributeReference("cell", IntegerType, nullable = false)()

  def keyColumns(keys: Seq[Expression]): AttributeSet =
    AttributeSet.fromAttributeSets(keys.map(_.references))

  private[skewext] def output(
      input: Seq[Attribute],
      keys: Seq[Expression],
      hotRows: HotRows,
      cell: Attribute,
      kind: Option[Attribute]): Seq[Attribute] = {
    val columns = if (hotRows == HotRows.Shown) {
      input
    } else {
      val ofKeys = keyColumns(keys)
      input.map(a => if (ofKeys.contains(a)) a else a.withNullability(true))
    }
    (columns :+ cell) ++ kind
  }

  private[skewext] def stringArgs(
      keys: Seq[Expression],
      side: BuildSide,
      hot: Seq[SaltedKey],
      hotRows: HotRows): Iterator[Any] =
    Iterator(
      keys.mkString("[", ", ", "]"),
      s"${hot.size} hot keys",
      s"${if (hot.isEmpty) 1 else hot.map(_.salts(side)).max} salts",
      s"${if (hot.isEmpty) 1 else hot.map(_.copies(side)).max} copies",
      hotRows)
}
