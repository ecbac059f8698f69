package io.github.skewext.rewrite

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.DataType

/**
 * The key columns that the comparisons of a join have. Comparisons with a common expression are one
 * column: `a.k = b.k AND a.k = b.l` is true if all three values are equal. A side that compares
 * several expressions in a column has a null key in the rows where these differ. Such rows match
 * nothing, as null keys do.
 */
private[rewrite] object ComparedKeys {

  /** For each side of the join, the different expressions that it compares in a key column. */
  type Column = Seq[Seq[Expression]]

  /** @param comparisons for each comparison the expression of each side. */
  def columns(comparisons: Seq[Seq[Expression]]): Seq[Column] =
    comparisons.foldLeft(Vector.empty[Column]) { (done, comparison) =>
      val (connected, others) = done.partition(isIn(_, comparison))
      val column =
        (connected :+ comparison.map(Seq(_))).transpose.map(side => distinct(side.flatten))
      val place = done.indexWhere(isIn(_, comparison))
      if (place < 0) done :+ column else others.patch(place, Seq(column), 0)
    }

  /** Whether the column contains an expression of the comparison, and therefore the comparison. */
  def isIn(column: Column, comparison: Seq[Expression]): Boolean =
    column.zip(comparison).exists { case (side, e) => side.exists(nameOf(_) == nameOf(e)) }

  /**
   * The key of a side that compares these expressions. Several are compared in the type of the key,
   * because a tree may be compared with columns of different types.
   */
  def keyOf(compared: Seq[Expression], keyType: DataType): Expression = compared match {
    case Seq(one) => one
    case _ =>
      val values = compared.map { e =>
        if (e.dataType == keyType) e
        else Cast(e, keyType, Some(SQLConf.get.sessionLocalTimeZone))
      }
      val equal = values.tail.map(EqualTo(values.head, _): Expression).reduce(And)
      If(equal, values.head, Literal(null, keyType))
  }

  private def distinct(expressions: Seq[Expression]): Seq[Expression] =
    expressions.foldLeft(Vector.empty[Expression]) { (done, e) =>
      if (done.exists(nameOf(_) == nameOf(e))) done else done :+ e
    }

  /** Keys of a tree are equal if they are the same column. All of them have the whole key. */
  private def nameOf(key: Expression): Any = key match {
    case key: ChainKey => key.column
    case e => e.canonicalized
  }
}
