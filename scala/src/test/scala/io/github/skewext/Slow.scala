package io.github.skewext

import org.scalatest.Tag

/**
 * The tag of tests that take two seconds or more, which `make test` leaves out.
 *
 * @param ends of tests in a loop, the ends of the slow titles; none if all of them are slow
 */
class SlowTag(ends: Seq[String]) extends Tag("io.github.skewext.Slow") {

  def includes(test: String): Boolean = ends.isEmpty || ends.exists(test.endsWith)
}

object Slow extends SlowTag(Nil) {

  def apply(ends: String*): SlowTag = new SlowTag(ends)
}
