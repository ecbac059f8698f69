package io.github.skewext.join

import scala.util.control.NonFatal

import io.github.skewext.facts.ComparedByBytes

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.skewext.SparkShims
import org.apache.spark.sql.types.BooleanType

/** Simplifies expressions above a join for rows whose key an input has, or lacks. */
private[skewext] object PresenceFolding {

  /**
   * Simplifies an expression for rows whose key input `i` lacks: all columns of the input are null.
   */
  def whenAbsent(e: Expression, join: MultiFullJoin, i: Int): Expression = {
    val own = AttributeSet(join.valueColumns(i))
    // Evaluates also expressions that are not foldable, as Spark does to find predicates that
    // reject nulls.
    folded(e, _ => true) { case a: Attribute if own.contains(a) => Literal(null, a.dataType) }
  }

  /**
   * Simplifies an expression for rows whose key input `i` has. Constant columns of the input, such as
   * a marker of presence, have their value. A column is not null if it is not null in the input. A
   * key column is not null, either, if the join does not return the input's rows with a null key.
   */
  def whenPresent(e: Expression, join: MultiFullJoin, i: Int): Expression = {
    lazy val known = join.children(i).constraints
    lazy val own = AttributeMap(join.valueColumns(i).map(a => a -> a))
    lazy val constant = constants(join, i)
    def neverNull(a: Attribute): Boolean = {
      val j = join.keyOutput.indexWhere(_.exprId == a.exprId)
      val column = if (j >= 0) Some(join.keyColumns(i)(j)) else own.get(a)
      column.exists(c =>
        !c.nullable || known.contains(IsNotNull(c)) ||
          (j >= 0 && !InputRole.emitsNullKeys(join.roles, i)))
    }
    folded(e, _.foldable) {
      case a: Attribute if constant.contains(a) => constant(a)
      case IsNull(a: Attribute) if neverNull(a) => Literal.FalseLiteral
      case IsNotNull(a: Attribute) if neverNull(a) => Literal.TrueLiteral
    }
  }

  /**
   * The columns of an input, except its key, that have a single value, and that value. Types whose
   * equal values may differ are omitted: `v <=> 0.0` also holds for -0.0.
   */
  private def constants(join: MultiFullJoin, i: Int): AttributeMap[Literal] = {
    val own = AttributeSet(join.valueColumns(i).filter(ComparedByBytes(_)))
    AttributeMap(join.children(i).constraints.toSeq.collect {
      case EqualNullSafe(a: Attribute, l: Literal) if own.contains(a) => a -> l
      case EqualNullSafe(l: Literal, a: Attribute) if own.contains(a) => a -> l
    })
  }

  /** Whether a predicate is false or null for all values of its columns. */
  def neverTrue(predicate: Expression): Boolean = predicate match {
    case Literal(value, BooleanType) => value != true
    case And(left, right) => neverTrue(left) || neverTrue(right)
    case Or(left, right) => neverTrue(left) && neverTrue(right)
    case _ => false
  }

  private def folded(e: Expression, computed: Expression => Boolean)(
      known: PartialFunction[Expression, Expression]): Expression =
    e.transformUp { case node =>
      simplified(known.applyOrElse(node, identity[Expression])) match {
        case constant if isConstant(constant) && computed(constant) => evaluated(constant)
        case other => other
      }
    }

  private def isConstant(e: Expression): Boolean =
    e.deterministic && e.children.nonEmpty && e.children.forall(_.isInstanceOf[Literal])

  private def simplified(e: Expression): Expression = e match {
    case If(Literal(condition, BooleanType), yes, no) => if (condition == true) yes else no
    case c: CaseWhen =>
      val possible = c.branches.filterNot(b => neverTrue(b._1))
      if (possible.isEmpty) c.elseValue.getOrElse(Literal(null, c.dataType))
      else if (possible.head._1 == Literal.TrueLiteral) possible.head._2
      else c
    case c: Coalesce =>
      val possible = c.children.filterNot(isNull)
      if (possible.isEmpty) Literal(null, c.dataType)
      else if (possible.size == 1 || possible.head.isInstanceOf[Literal]) possible.head
      else c
    case And(Literal.TrueLiteral, other) => other
    case And(other, Literal.TrueLiteral) => other
    case Or(Literal.FalseLiteral, other) => other
    case Or(other, Literal.FalseLiteral) => other
    case strict
        if strict.deterministic && strict.children.exists(isNull) &&
          SparkShims.isNullIntolerant(strict) =>
      Literal(null, strict.dataType)
    case other => other
  }

  private def isNull(e: Expression): Boolean = e match {
    case Literal(value, _) => value == null
    case _ => false
  }

  private def evaluated(e: Expression): Expression = e match {
    case _: Unevaluable => e
    case _ =>
      // If the evaluation fails, the expression stays. The query may never evaluate it.
      try {
        Literal(e.eval(), e.dataType)
      } catch {
        case NonFatal(_) => e
      }
  }
}
