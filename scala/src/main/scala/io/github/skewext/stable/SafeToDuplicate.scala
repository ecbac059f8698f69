package io.github.skewext.stable

import org.apache.spark.sql.catalyst.expressions.{Expression, UserDefinedExpression}
import org.apache.spark.sql.catalyst.trees.TreePattern.INVOKE

/**
 * Whether a predicate on the key may be evaluated in every input. A predicate with a user-defined
 * function may not: a UDF may be arbitrarily slow, and would run on every row of every input. It
 * stays in its place, or goes into one required input.
 */
private[skewext] object SafeToDuplicate {
  def apply(predicate: Expression): Boolean =
    !predicate.containsPattern(INVOKE) && !predicate.exists(_.isInstanceOf[UserDefinedExpression])
}
