package io.github.skewext.facts

import org.apache.spark.sql.catalyst.expressions.{Expression, RaiseError, UserDefinedExpression}
import org.apache.spark.sql.catalyst.trees.TreePattern.INVOKE
import org.apache.spark.sql.internal.SQLConf

/**
 * Whether a predicate on the key may be evaluated in every input. Other predicates stay in their
 * place, or go into one required input:
 *
 *  - A user-defined function may be arbitrarily slow, and would run on every row of every input.
 *  - A predicate that may fail would be evaluated for keys that other inputs or predicates drop.
 *    Outside of ANSI mode, most expressions return null in place of an error.
 */
private[skewext] object SafeToDuplicate {
  def apply(predicate: Expression): Boolean =
    !predicate.containsPattern(INVOKE) &&
      !predicate.exists(e => e.isInstanceOf[UserDefinedExpression] || e.isInstanceOf[RaiseError]) &&
      (CannotFail(predicate) ||
        (!SQLConf.get.ansiEnabled && !predicate.exists(CannotFail.failsInEachMode)))
}
