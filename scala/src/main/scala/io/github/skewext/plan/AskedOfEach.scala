package io.github.skewext.plan

import org.apache.spark.sql.catalyst.expressions.{Expression, UserDefinedExpression}
import org.apache.spark.sql.catalyst.trees.TreePattern.INVOKE

/**
 * Whether a predicate on the key may be asked of every input. A function of the user's may be as slow as
 * it likes, and each input would ask it of all its rows: so it is asked where the query says, or of one
 * input that every row has.
 */
private[skewext] object AskedOfEach {
  def apply(predicate: Expression): Boolean =
    !predicate.containsPattern(INVOKE) && !predicate.exists(_.isInstanceOf[UserDefinedExpression])
}
