package io.github.skewext.join.exec

import io.github.skewext.join.InputRole.Optional
import io.github.skewext.rows.KeyFilter
import org.apache.spark.sql.skewext.{TestMemory, TestTask}

import scala.collection.mutable


import org.apache.spark.sql.catalyst.InternalRow

/** When a task opens its inputs: with a shuffle, fetching begins then. */
class OpenInputsSuite extends MultiJoinTaskTest {

  private val n = 6
  private lazy val task = join(Seq.fill(n)(Optional): _*)

  /** The inputs that are opened and not at their ends, each time one of them gives a row. */
  private def openAtATime(
      inputsOf: Array[() => Iterator[InternalRow]] => Iterator[_]): Seq[Seq[Int]] = {
    val open = mutable.LinkedHashSet.empty[Int]
    val seen = mutable.LinkedHashSet.empty[Seq[Int]]
    def input(i: Int): Iterator[InternalRow] = {
      open += i
      rows(3, 3).map { row => seen += open.toSeq; row } ++ { open -= i; Iterator.empty }
    }
    TestTask.run(TestMemory.limited(1 << 26)) { _ =>
      val joined = inputsOf(Array.tabulate(n)(i => () => input(i)))
      assert(joined.size === 3)
    }
    assert(open.isEmpty)
    seen.toSeq
  }

  test("an input is opened when the one before it is read") {
    val expected = (0 until n - 1).map(i => Seq(i, i + 1)) :+ Seq(n - 1)
    assert(openAtATime(task(0, _)) === expected)
  }

  test("reads a slice first and an input whose keys are looked up last") {
    val opened = openAtATime(
      new MultiJoinIterator(task, _, slice = 4, sliceKeys = KeyFilter.ofBytes(100)).toScala)
    assert(opened.map(_.head) === Seq(4, 0, 1, 2, 3, 5))
    assert(opened.forall(_.size <= 2))
    val last = openAtATime(new MultiJoinIterator(task, _, drainedLast = 0).toScala)
    assert(last.map(_.head) === Seq(1, 2, 3, 4, 5, 0))
  }

  test("a merge has all inputs open") {
    assert(openAtATime(sorted(task)(0, _)).head === (0 until n))
  }
}
