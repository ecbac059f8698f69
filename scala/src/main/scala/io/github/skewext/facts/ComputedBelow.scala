package io.github.skewext.facts

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.expressions.objects.Invoke
import org.apache.spark.sql.catalyst.plans.logical.{CTERelationRef, LogicalPlan, Union}
import org.apache.spark.sql.catalyst.trees.TreePattern.PYTHON_UDF

/** How the columns of a plan are computed. */
private[skewext] object ComputedBelow {

  /**
   * Whether a Python function computes one of the columns. Spark pushes a filter on such a column
   * below the projection, and the task calls the function twice. Spark 4.2 can hang there.
   */
  def byPython(plan: LogicalPlan, columns: AttributeSet): Boolean =
    plan.containsPattern(PYTHON_UDF) && exists(plan, columns)(_.containsPattern(PYTHON_UDF))

  /**
   * Whether one of the columns is computed by a user-defined function, or by an expression that Spark
   * calls expensive. Other filters are pushed below the computation of a Python function. From Spark
   * 4.2 on, a filter on an expensive column stays above the projection, and others are pushed below.
   */
  def isExpensive(plan: LogicalPlan, columns: AttributeSet): Boolean =
    exists(plan, columns)(_.exists(isExpensive))

  private def isExpensive(node: Expression): Boolean = node match {
    case _: StringRegexExpression | _: ArrayJoin | _: CallMethodViaReflection |
        _: UserDefinedExpression =>
      true
    case _ => false
  }

  /**
   * Whether the expression may take longer than a join takes for a row: those that are expensive for
   * Spark, other regular expressions, hashes, parsers, and loops over arrays. Spark 3.5 generates no
   * code for many of these, and Spark 4 calls methods of their evaluators. It calls static methods for
   * cheap ones, such as `base64`.
   */
  def isSlow(e: Expression): Boolean = e.exists {
    case _: Invoke | _: CodegenFallback | _: RegExpReplace | _: RegExpExtractBase | _: StringSplit |
        _: GetJsonObject | _: Md5 | _: Sha1 | _: Sha2 =>
      true
    case node => isExpensive(node)
  }

  private def exists(plan: LogicalPlan, columns: AttributeSet)(is: Expression => Boolean): Boolean =
    plan match {
      case union: Union =>
        union.children.exists { child =>
          exists(child, SafeToPush.sameColumns(union, child, columns))(is)
        }
      // The definition of the table is elsewhere.
      case _: CTERelationRef => true
      case _ =>
        val computed = plan.expressions.collect {
          case a: Alias if columns.contains(a.toAttribute) => a
        }
        val below = columns ++ AttributeSet.fromAttributeSets(computed.map(_.references))
        computed.exists(is) || plan.children.exists(exists(_, below)(is))
    }
}
