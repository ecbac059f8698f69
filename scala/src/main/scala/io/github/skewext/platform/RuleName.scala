package io.github.skewext.platform

/**
 * The name of a rule in a setting that excludes rules: with its package, or `SpreadNullKeys` alone.
 */
private[skewext] object RuleName {

  def isIn(given: Iterable[String], ruleName: String): Boolean = {
    val simple = ruleName.substring(ruleName.lastIndexOf('.') + 1)
    given.exists(each => each == ruleName || each == simple)
  }
}
