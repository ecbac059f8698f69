package io.github.skewext

import org.scalatest.Tag

/** A test that takes two seconds or more. `make test` leaves it out. */
class SlowTag extends Tag("io.github.skewext.Slow") {

  def includes(test: String): Boolean = true
}

object Slow extends SlowTag {

  /** Of tests in a loop, those whose titles end in one of these. */
  def apply(ends: String*): SlowTag = new SlowTag {
    override def includes(test: String): Boolean = ends.exists(test.endsWith)
  }
}
