package io.github.skewext.plan

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.skewext.SparkShims
import org.apache.spark.sql.types.BooleanType

/** What an expression above a join comes to where an input has the key, and where it has not. */
private[skewext] object PresenceFolding {

  /** In rows of keys that input `i` lacks: all its columns are null. */
  def whenAbsent(e: Expression, join: MultiFullJoin, i: Int): Expression = {
    val own = AttributeSet(join.valueColumns(i))
    // As Spark does to find out whether a predicate rejects nulls, also what is not foldable.
    folded(e, _ => true) { case a: Attribute if own.contains(a) => Literal(null, a.dataType) }
  }

  /**
   * In rows of keys that input `i` has: some of its columns have one and the same value, or are
   * never null. Nor is the key null, if the input's is not, or rows where it is do not come out.
   */
  def whenPresent(e: Expression, join: MultiFullJoin, i: Int): Expression = {
    val constant = constants(join, i)
    lazy val known = join.children(i).constraints
    def neverNull(a: Attribute): Boolean = {
      val j = join.keyOutput.indexWhere(_.exprId == a.exprId)
      val column =
        if (j >= 0) Some(join.keyColumns(i)(j))
        else join.valueColumns(i).find(_.exprId == a.exprId)
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
   * The columns of an input, besides its key, that have one value, and that value. Not of types in which
   * equal values may differ: `v <=> 0.0` holds for -0.0.
   */
  def constants(join: MultiFullJoin, i: Int): AttributeMap[Literal] = {
    val own = AttributeSet(join.valueColumns(i).filter(KeyTypes.comparedByBytes(_)))
    AttributeMap(join.children(i).constraints.toSeq.collect {
      case EqualNullSafe(a: Attribute, l: Literal) if own.contains(a) => a -> l
      case EqualNullSafe(l: Literal, a: Attribute) if own.contains(a) => a -> l
    })
  }

  /** Whether a predicate is false or null, whatever the columns in it are. */
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
      // What fails tells nothing; nor need it ever be computed.
      try {
        Literal(e.eval(), e.dataType)
      } catch {
        case NonFatal(_) => e
      }
  }
}
