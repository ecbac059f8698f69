package io.github.skewext.explain

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.unsafe.types.UTF8String

/**
 * Predicates in a canonical form over the columns of an input's source, without the casts that the
 * optimizer folds into literals. So two predicates can be compared, of which one is below a
 * projection.
 *
 * @param columns the columns of all projections above the source
 */
private[explain] class PredicateForms(columns: Seq[NamedExpression]) {
  import PredicateForms.MostNodes

  private val computed = columns.collect { case a: Alias => a.exprId -> a.child }.toMap
  private val sizes = mutable.HashMap.empty[ExprId, Int]

  /** A predicate whose form would be very large keeps its own columns. */
  def of(predicate: Expression): String = {
    val shown = if (size(predicate) < MostNodes) resolved(predicate) else predicate
    shown.canonicalized
      .transformUp {
        case cast: Cast => cast.child
        case Literal(value, _) => Literal(UTF8String.fromString(String.valueOf(value)))
      }
      .canonicalized
      .toString
  }

  private def resolved(e: Expression): Expression = e.transformUp {
    case a: Attribute if computed.contains(a.exprId) => resolved(computed(a.exprId))
  }

  private def size(e: Expression): Int = e match {
    case a: Attribute if computed.contains(a.exprId) => sizeOf(a.exprId)
    case _ => e.children.foldLeft(1)((sum, child) => (sum + size(child)).min(MostNodes))
  }

  private def sizeOf(column: ExprId): Int = sizes.getOrElse(
    column, {
      val found = size(computed(column))
      sizes(column) = found
      found
    })
}

private object PredicateForms {

  /** A column that uses another one twice doubles a form, and one above it doubles that. */
  private val MostNodes = 1000
}
