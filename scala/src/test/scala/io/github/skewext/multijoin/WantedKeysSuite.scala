package io.github.skewext.multijoin

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.skewext.{TestMemory, TestTask}
import org.apache.spark.sql.test.SharedSparkSession
import org.apache.spark.sql.types.{DataType, IntegerType, LongType}

/** What of an excluded input gets through to a residual. */
class WantedKeysSuite extends SharedSparkSession {

  private val types: Array[DataType] = Array(LongType, IntegerType)

  private val keys = Seq.fill(2)(Seq(BoundReference(0, LongType, nullable = true)))

  private def row(projection: UnsafeProjection)(key: Option[Long], v: Int): UnsafeRow =
    projection(InternalRow(key.map(Long.box).orNull, v))

  /** The values of the rows of `large` that get through, and how many rows of it were read. */
  private def through(
      memory: TestMemory,
      small: Seq[Option[Long]],
      large: Seq[Option[Long]]): (Seq[Int], Int) = TestTask.run(memory) { context =>
    val wanted = new WantedKeys(keys, context)
    val of = Seq.fill(2)(UnsafeProjection.create(types))
    small.foreach(k => wanted.add(0, row(of.head)(k, 0)))
    var read = 0
    val rows = large.iterator.zipWithIndex.map { case (k, v) =>
      read += 1
      row(of(1))(k, v)
    }
    // hasNext may be asked as often as one likes.
    val found = wanted.firstOfEach(1, rows)
    val values = Iterator.continually(()).takeWhile(_ => found.hasNext && found.hasNext).map { _ =>
      found.next().getInt(1)
    }
    (values.toList, read)
  }

  private def plenty = TestMemory.limited(1 << 24)

  test("the first row of each wanted key, and no more once all are met") {
    val small = Seq(1, 2, 2, 3).map(k => Some(k.toLong)) :+ None
    val large = Seq(9, 2, 9, 2, 1, 3, 3, 9, 1).map(k => Some(k.toLong))
    assert(through(plenty, small, None +: large) === ((Seq(2, 5, 6), 7)))
    // A key that does not come: all is read.
    assert(through(plenty, small :+ Some(77L), large) === ((Seq(1, 4, 5), large.size)))
  }

  test("nothing is read for keys that nobody has") {
    assert(through(plenty, Nil, Seq(Some(1L))) === ((Nil, 0)))
    assert(through(plenty, Seq(None), Seq(None, Some(1L))) === ((Nil, 0)))
  }

  test("without memory for the keys all rows get through") {
    val large = Seq(Some(1L), Some(1L), None, Some(200L))
    for (bytes <- Seq(0L, 1L << 14, 1L << 17)) {
      val (values, read) = through(TestMemory.limited(bytes), (0L until 20000L).map(Some(_)), large)
      assert(values === large.indices)
      assert(read === large.size)
    }
  }
}
