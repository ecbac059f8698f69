package io.github.skewext.platform

import org.scalatest.funsuite.AnyFunSuite

/** Names of rules in the settings that exclude rules. */
class RuleNameSuite extends AnyFunSuite {

  private val Today = "io.github.skewext.nullkeys.SpreadNullKeys"

  test("the whole name, and its last part alone") {
    for (given <- Seq(Today, "SpreadNullKeys")) {
      assert(RuleName.isIn(Seq("x", given), Today), given)
    }
  }

  test("does not match another rule, or a foreign rule with the same last part") {
    val others = Seq(
      "org.example.SpreadNullKeys",
      "NullKeys",
      "spreadnullkeys",
      "SpreadNullKeys$AtRuntime",
      "io.github.skewext.join",
      "")
    assert(!RuleName.isIn(others, Today))
    assert(RuleName.isIn(Seq("org.example.SpreadNullKeys"), "org.example.SpreadNullKeys"))
  }

  test("a rule in a rule") {
    val inner = "io.github.skewext.skew.split.RequiredLayout$AfterExchanges"
    assert(RuleName.isIn(Seq("RequiredLayout$AfterExchanges"), inner))
    assert(!RuleName.isIn(Seq("AfterExchanges", "RequiredLayout"), inner))
  }
}
