package io.github.skewext

import org.scalatest.Tag

/**
 * A test that takes two seconds or more. `make test` leaves it out.
 *
 * @param ends of tests in a loop, those whose titles end in one of these; none for all.
 */
private[skewext] class SlowTag(ends: String*) extends Tag("io.github.skewext.Slow") {

  def includes(test: String): Boolean = ends.isEmpty || ends.exists(test.endsWith)
}

private[skewext] object Slow extends SlowTag {

  def apply(ends: String*): SlowTag = new SlowTag(ends: _*)
}
