package io.github.skewext.rules

/**
 * The name of a rule in a setting that excludes rules. The package does not count, because it may be
 * another one in the next release: `SpreadNullKeys` and each full name that the rule ever had
 * exclude it.
 */
private[skewext] object RuleName {

  private val Ours = "io.github.skewext."

  def isIn(given: Iterable[String], ruleName: String): Boolean = {
    val name = simple(ruleName)
    given.exists(each => each == ruleName || isOurs(each) && simple(each) == name)
  }

  private def isOurs(given: String): Boolean = !given.contains('.') || given.startsWith(Ours)

  private def simple(name: String): String = name.substring(name.lastIndexOf('.') + 1)
}
