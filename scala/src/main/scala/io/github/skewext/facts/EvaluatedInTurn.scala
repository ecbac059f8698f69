package io.github.skewext.facts

import org.apache.spark.sql.catalyst.expressions.BindReferences.bindReference
import org.apache.spark.sql.catalyst.expressions.Literal.FalseLiteral
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.{GeneratePredicate, GenerateUnsafeProjection}

/**
 * Compiles expressions so that no part is evaluated before its turn, as in the generated code of
 * Spark's filters and joins. `Predicate.create` and `UnsafeProjection.create` evaluate common
 * subexpressions first. These may fail for rows that an earlier condition drops.
 */
private[skewext] object EvaluatedInTurn extends PredicateHelper {

  /**
   * A condition like that of `FilterExec`: tests of columns for null come first, and the evaluation
   * ends at the first predicate that is not true. `And` alone goes on after a null.
   */
  def predicate(condition: Expression, input: Seq[Attribute]): BasePredicate = {
    val (ofColumns, others) = splitConjunctivePredicates(condition).partition {
      case IsNotNull(_: Attribute) => true
      case _ => false
    }
    val (last, inOrder) = others.partition {
      case IsNotNull(e) => isNullIntolerant(e)
      case _ => false
    }
    val each = (ofColumns ++ inOrder ++ last).map { predicate =>
      if (predicate.nullable) Coalesce(Seq(predicate, FalseLiteral)) else predicate
    }
    Predicates.createObject(bindReference(each.reduceLeft(And), input))
  }

  /** A projection of bound expressions. */
  def projection(expressions: Seq[Expression]): UnsafeProjection =
    Projections.createObject(expressions)

  private object Predicates
      extends CodeGeneratorWithInterpretedFallback[Expression, BasePredicate] {
    override protected def createCodeGeneratedObject(in: Expression): BasePredicate =
      GeneratePredicate.generate(in, useSubexprElimination = false)
    override protected def createInterpretedObject(in: Expression): BasePredicate =
      Predicate.createInterpreted(in)
  }

  private object Projections
      extends CodeGeneratorWithInterpretedFallback[Seq[Expression], UnsafeProjection] {
    override protected def createCodeGeneratedObject(in: Seq[Expression]): UnsafeProjection =
      GenerateUnsafeProjection.generate(in, subexpressionEliminationEnabled = false)
    override protected def createInterpretedObject(in: Seq[Expression]): UnsafeProjection =
      InterpretedUnsafeProjection.createProjection(in)
  }
}
