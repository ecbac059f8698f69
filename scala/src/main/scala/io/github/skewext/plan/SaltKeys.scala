package io.github.skewext.plan

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.BuildSide
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.types.IntegerType

/** What a side of a salted join gives for the rows of a hot key. */
sealed trait HotRows

object HotRows {

  /** The rows. */
  case object Shown extends HotRows

  /**
   * The rows, and from each task that has some a marker in the first part: by it the first copy of a
   * row of the other side knows that it has a match, if only in another cell.
   */
  case object ShownAndMarked extends HotRows

  /** A marker from each task that has some, where the number of rows makes no difference. */
  case object Marked extends HotRows
}

/**
 * The rows of one side of a salted join: each in the cells that [[SaltedKey]] tells, so that a join
 * on the keys and the cell brings every pair of rows with equal keys together once.
 *
 * Where a row goes depends on the number of its task, and on what is in it only if that is sure to be
 * there again; so a task that runs again gives each cell what it gave before.
 *
 * @param nullCells into how many cells rows with a null in the key are spread; 0 if they match
 *                  nothing and cannot come out, and are dropped
 * @param cell the cell of a row; below 0 for rows with a null in the key
 * @param kind one of [[SaltKeys.First]], [[SaltKeys.Further]] and [[SaltKeys.Marker]], if anybody
 *             asks
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
    extends UnaryNode {

  override def output: Seq[Attribute] = SaltKeys.output(child.output, keys, hotRows, cell, kind)

  override def producedAttributes: AttributeSet = AttributeSet(cell +: kind.toSeq)

  /** Markers have nulls in all columns but those of the key. */
  override protected lazy val validConstraints: ExpressionSet =
    if (hotRows == HotRows.Shown) {
      child.constraints
    } else {
      val ofKeys = SaltKeys.keyColumns(keys)
      child.constraints.filter(_.references.subsetOf(ofKeys))
    }

  /** Rows have copies. */
  override def maxRows: Option[Long] = None

  override protected def stringArgs: Iterator[Any] = SaltKeys.stringArgs(keys, side, hot, hotRows)

  override protected def withNewChildInternal(newChild: LogicalPlan): SaltKeys =
    copy(child = newChild)
}

object SaltKeys {

  /** The only one of a row, or the first of its copies. */
  val First = 0

  /** A copy of a row that has others. */
  val Further = 1

  /** Not a row: tells that rows of the key are there. */
  val Marker = -1

  /** A column for the cells of a side. */
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
