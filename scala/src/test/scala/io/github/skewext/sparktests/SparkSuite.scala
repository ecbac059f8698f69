package io.github.skewext.sparktests

import scala.collection.mutable

import io.github.skewext.SkewExtensions
import io.github.skewext.platform.Guard
import org.scalactic.source.Position
import org.scalatest.Tag

import org.apache.spark.SparkConf
import org.apache.spark.sql.test.SharedSparkSession

/**
 * For a suite of Spark's own: it runs with the extension on. What the suite says of answers must
 * hold. Where it says which of Spark's joins is in a plan, and ours is rightly there instead, that
 * test is left out: by its name, and with the reason.
 */
trait SparkSuite extends SharedSparkSession {

  /** Tests that are left out, and why. */
  protected def leftOut: Map[String, String] = Map.empty

  /** At least as many joins of ours are planned. */
  protected def ourJoins: Long = 0

  // Tests are registered before the fields of a trait are there.
  private lazy val known = mutable.Set.empty[String]
  private lazy val began = mutable.Set.empty[String]
  private lazy val countBefore = JoinCount.value
  private lazy val failuresBefore = Guard.failures
  // Spark's tests of Python's functions ask where it is, also where they then do not run.
  private lazy val homeBefore = SparkTestFiles.setHome()

  override def sparkConf: SparkConf =
    super.sparkConf
      .set(
        "spark.sql.extensions",
        s"${classOf[SkewExtensions].getName},${classOf[JoinCountExtension].getName}")
      .set("spark.ui.enabled", "false")

  // It warns of the threads of Spark's own pools.
  override protected def doThreadPostAudit(): Unit = ()

  override def beforeAll(): Unit = {
    countBefore
    failuresBefore
    homeBefore
    super.beforeAll()
  }

  override def afterAll(): Unit =
    try super.afterAll()
    finally SparkTestFiles.restoreHome(homeBefore)

  override protected def test(name: String, tags: Tag*)(body: => Any)(implicit
      position: Position): Unit = {
    known += name
    if (!leftOut.contains(name)) {
      super.test(name, tags: _*) {
        began += name
        body
      }
    }
  }

  // The last test of the suite, as a trait is initialized after the classes that it is mixed into.
  test("skewext: it was at work, no rule of it failed, and all that is left out is there") {
    val others = known.filterNot(leftOut.contains).size - 1
    assume(began.size - 1 == others, "only a part of the tests has run")
    assert(leftOut.keySet.diff(known).isEmpty)
    assert(Guard.failures.diff(failuresBefore).isEmpty)
    val planned = JoinCount.value - countBefore
    info(s"$planned joins of ours in $others tests")
    assert(planned >= ourJoins)
  }
}
