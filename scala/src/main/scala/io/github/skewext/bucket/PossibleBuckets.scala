package io.github.skewext.bucket

import io.github.skewext.bucket.BucketReason.{Detailed, HashUnknown, NoCondition, NotFixed, TooManyValues}
import io.github.skewext.bucket.files.StoredValues
import io.github.skewext.facts.ComparedByBytes

import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.types._
import org.apache.spark.util.collection.BitSet

/**
 * The buckets that can contain rows that satisfy some predicates. Only the values of all bucket
 * columns together determine a bucket. So predicates become alternatives, each with the values of
 * some columns. For buckets by `a` and `b`:
 *
 * {{{
 *   a IN (1, 2) AND b = 5                        a: {1, 2}, b: {5}              2 buckets at most
 *   (a = 1 AND b = 5) OR (a = 2 AND b IS NULL)   a: {1}, b: {5} | a: {2}, b: {null}          2
 *   (a = 1 AND b = 5) OR a = 2                   a: {1}, b: {5} | a: {2}    b is open:     all
 * }}}
 *
 * An alternative may be too wide, but never too narrow: an unsupported predicate allows any value.
 * For the same reason a negation allows any value: other rows of a bucket may have other values
 * than the rows that the negated predicate excludes.
 *
 * @param columns the bucket columns, in their order.
 * @param maxValues the most combinations of values, for which buckets are computed.
 */
private[skewext] final class PossibleBuckets(
    columns: Seq[Attribute],
    numBuckets: Int,
    maxValues: Int = 10000) {
  import PossibleBuckets._

  private val types = columns.map(_.dataType)

  // Whether alternatives were dropped because there were too many.
  private var simplified = false

  def of(conditions: Seq[Expression]): Either[Detailed, BitSet] = {
    val unknown = columns.filterNot(c => StoredValues.ofType(c.dataType))
    val alternatives = conditions.map(alternativesOf).foldLeft(Anything)(both)
    val open = columns.indices.filter(i => alternatives.exists(!_.contains(i)))
    if (unknown.nonEmpty) {
      Left(HashUnknown(unknown.map(_.name).mkString(", ")))
    } else if (open.size == columns.size && !simplified) {
      Left(NoCondition.given)
    } else if (open.nonEmpty && !simplified) {
      Left(NotFixed(open.map(columns(_).name).mkString(", ")))
    } else if (open.nonEmpty || combinations(alternatives) > maxValues) {
      Left(TooManyValues.given)
    } else {
      Right(bucketsOf(alternatives))
    }
  }

  private def bucketsOf(alternatives: Seq[Values]): BitSet = {
    val buckets = new BitSet(numBuckets)
    val row = new GenericInternalRow(columns.size)
    val inRow = types.zipWithIndex.map { case (t, i) => BoundReference(i, t, nullable = true) }
    val bucketOf = HashPartitioning(inRow, numBuckets).partitionIdExpression
    def mark(values: Values, column: Int): Unit =
      if (column == columns.size) {
        buckets.set(bucketOf.eval(row).asInstanceOf[Int])
      } else {
        values(column).foreach { value =>
          row.update(column, value)
          mark(values, column + 1)
        }
      }
    alternatives.foreach(mark(_, 0))
    buckets
  }

  private def alternativesOf(condition: Expression): Seq[Values] = condition match {
    case And(left, right) => both(alternativesOf(left), alternativesOf(right))
    case Or(left, right) => either(alternativesOf(left), alternativesOf(right))
    // A filter keeps a row if the predicate is true, not if it is null.
    case Literal(value, BooleanType) => if (value == true) Anything else Nothing
    case e: EqualTo => compared(e, nullsEqual = false)
    case e: EqualNullSafe => compared(e, nullsEqual = true)
    case In(Column(i), list) if list.forall(isOfType(_, i)) =>
      fixed(i, list.collect { case Literal(value, _) => value }.toSet - null)
    case InSet(Column(i), set) => fixed(i, set - null)
    case IsNull(Column(i)) => fixed(i, Set(null))
    case IsNaN(Column(i)) if types(i) == FloatType => fixed(i, Set(Float.NaN))
    case IsNaN(Column(i)) if types(i) == DoubleType => fixed(i, Set(Double.NaN))
    // Spark simplifies `flag = true` and `flag = false` to these forms.
    case Column(i) => fixed(i, Set(true))
    case Not(Column(i)) => fixed(i, Set(false))
    case _ => Anything
  }

  private def compared(e: BinaryComparison, nullsEqual: Boolean): Seq[Values] =
    (e.left, e.right) match {
      case (Column(i), literal: Literal) => compared(i, literal, nullsEqual)
      case (literal: Literal, Column(i)) => compared(i, literal, nullsEqual)
      case _ => Anything
    }

  private def compared(column: Int, literal: Literal, nullsEqual: Boolean): Seq[Values] =
    if (!isOfType(literal, column)) Anything
    else if (literal.value == null && !nullsEqual) Nothing
    else fixed(column, Set(literal.value))

  private def isOfType(e: Expression, column: Int): Boolean = e match {
    case literal: Literal => literal.dataType == types(column)
    case _ => false
  }

  private def fixed(column: Int, values: Set[Any]): Seq[Values] =
    if (!values.forall(StoredValues.isExact(_, types(column)))) Anything
    else Seq(Map(column -> values.map(written(column, _))))

  /**
   * The value with the scale of the column. The hash of a decimal depends on its digits, and
   * written rows have the scale of the column.
   */
  private def written(column: Int, value: Any): Any = (value, types(column)) match {
    case (d: Decimal, t: DecimalType) => Decimal(d.toJavaBigDecimal, t.precision, t.scale)
    case _ => value
  }

  private def both(left: Seq[Values], right: Seq[Values]): Seq[Values] =
    if (left == Anything) {
      right
    } else if (right == Anything) {
      left
    } else if (left.size.toLong * right.size > maxValues) {
      // Both predicates hold, so either one alone is a correct, but wider, choice.
      simplified = true
      if (left.size <= right.size) left else right
    } else {
      for (l <- left; r <- right; values <- both(l, r)) yield values
    }

  private def both(left: Values, right: Values): Option[Values] = {
    val merged = right.foldLeft(left) { case (values, (column, set)) =>
      values + (column -> values.get(column).fold(set)(common(column, _, set)))
    }
    if (merged.values.exists(_.isEmpty)) None else Some(merged)
  }

  private def common(column: Int, left: Set[Any], right: Set[Any]): Set[Any] =
    if (isComparedByScala(types(column))) left.intersect(right)
    else if (left.size <= right.size) left
    else right

  private def either(left: Seq[Values], right: Seq[Values]): Seq[Values] =
    if (left == Anything || right == Anything) {
      Anything
    } else if (left.size + right.size > maxValues) {
      simplified = true
      Anything
    } else {
      left ++ right
    }

  private def combinations(alternatives: Seq[Values]): Double =
    alternatives.map(_.values.map(_.size.toDouble).product).sum

  private object Column {
    def unapply(e: Expression): Option[Int] = e match {
      case a: Attribute => Some(columns.indexWhere(_.exprId == a.exprId)).filter(_ >= 0)
      case _ => None
    }
  }
}

private[skewext] object PossibleBuckets {

  /**
   * The possible values of bucket columns, by position. A column that is missing can have any
   * value.
   */
  private type Values = Map[Int, Set[Any]]

  private val Anything: Seq[Values] = Seq(Map.empty)
  private val Nothing: Seq[Values] = Nil

  /**
   * Whether Scala compares the values like Spark. It does not for binary values, which are arrays,
   * nor for NaN, which is not equal to itself.
   */
  private def isComparedByScala(dataType: DataType): Boolean =
    ComparedByBytes(dataType) && dataType != BinaryType
}
