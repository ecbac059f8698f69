package io.github.skewext

import java.nio.file.{Files, Paths}

import scala.collection.JavaConverters._

/** Tests that take seconds, as build-tools/test_seconds.py has measured them. `make test` leaves them out. */
private[skewext] object SlowTests {

  private lazy val leftOut: Set[(String, String)] =
    if (sys.env.get("SKEWEXT_TEST_QUICK").contains("1")) {
      val file = Paths.get(sys.props("skewext.root"), "build-tools", "slow_tests.tsv")
      Files
        .readAllLines(file)
        .asScala
        .map(_.split('\t'))
        .collect { case Array(suite, test, _) => (suite, test) }
        .toSet
    } else {
      Set.empty
    }

  def leavesOut(suite: AnyRef, test: String): Boolean =
    leftOut((suite.getClass.getSimpleName, test))
}
