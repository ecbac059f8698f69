package io.github.skewext.join

import scala.util.Try

import io.github.skewext.facts.ComparedByBytes

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.{BooleanSimplification, ConstantFolding, NullPropagation, SimplifyConditionals}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LocalRelation, LogicalPlan}
import org.apache.spark.sql.types.BooleanType

/** Simplifies predicates above a join for rows whose key an input has, or lacks, by Spark's rules. */
private[skewext] object PresenceFolding {

  /** Whether a predicate is not true for rows whose key input `i` lacks: its columns are null. */
  def isFalseWhenAbsent(predicate: Expression, join: MultiFullJoin, i: Int): Boolean = {
    val own = AttributeSet(join.valueColumns(i))
    isNeverTrue(predicate.transform {
      case a: Attribute if own.contains(a) => Literal(null, a.dataType)
    })
  }

  /**
   * Whether a predicate is not true for rows whose key input `i` has. Constant columns of the input,
   * such as a marker of presence, have their value. A column is not null if it is not null in the
   * input. A key column is not null, either, if the join does not return the input's rows with a null
   * key.
   */
  def isFalseWhenPresent(predicate: Expression, join: MultiFullJoin, i: Int): Boolean = {
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
    isNeverTrue(predicate.transform {
      case a: Attribute if constant.contains(a) => constant(a)
      case a: Attribute if a.nullable && neverNull(a) => a.withNullability(false)
    })
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

  /** Each rule may simplify what another one has made constant. */
  private val rules =
    Seq
      .fill(3)(Seq(NullPropagation, ConstantFolding, BooleanSimplification, SimplifyConditionals))
      .flatten

  /**
   * Not if its evaluation fails, as the query may never evaluate it. Nor if it is more than an IN with
   * a subquery: Spark takes `NULL IN (...)` for null, and it is false if the subquery has no rows.
   */
  private def isNeverTrue(predicate: Expression): Boolean = {
    val hasIn = predicate.exists(_.isInstanceOf[InSubquery])
    (!hasIn || predicate.isInstanceOf[InSubquery]) && isFoldedToFalse(predicate)
  }

  private def isFoldedToFalse(predicate: Expression): Boolean = Try {
    val plan: LogicalPlan = Filter(predicate, LocalRelation(predicate.references.toSeq))
    rules.foldLeft(plan)((simpler, rule) => rule(simpler))
  }.toOption.exists(_.expressions.forall(isFalseOrNull))

  private def isFalseOrNull(predicate: Expression): Boolean = predicate match {
    case Literal(value, BooleanType) => value != true
    case And(left, right) => isFalseOrNull(left) || isFalseOrNull(right)
    case Or(left, right) => isFalseOrNull(left) && isFalseOrNull(right)
    case _ => false
  }
}
