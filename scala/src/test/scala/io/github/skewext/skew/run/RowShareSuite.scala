package io.github.skewext.skew.run

import io.github.skewext.skew.plan.Slice

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, UnsafeProjection}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** How the rows of a block are divided. */
class RowShareSuite extends AnyFunSuite {

  private def attribute(name: String, dataType: DataType) = AttributeReference(name, dataType)()

  private val key = attribute("k", LongType)
  private val plain =
    Seq(key, attribute("id", LongType), attribute("s", StringType), attribute("b", IntegerType))
  private val withDouble = plain :+ attribute("d", DoubleType)

  private def rows(columns: Int, double: Int => Double = _.toDouble): Seq[InternalRow] =
    (0 until 6000).map { i =>
      val text = UTF8String.fromString("s" + i % 10)
      InternalRow.fromSeq(Seq[Any](7L, i.toLong, text, i % 3, double(i)).take(columns))
    }

  /** The numbers of the rows in each share. */
  private def shares(share: RowShare, rows: Iterator[InternalRow] => Iterator[InternalRow])(
      input: Seq[InternalRow],
      n: Int): Seq[Seq[Long]] =
    (0 until n).map { j =>
      share.filter(rows(input.iterator), Slice(0, 1, j, n, 0, 0)).map(_.getLong(1)).toList
    }

  for ((what, columns) <- Seq("bytes" -> plain, "columns" -> withDouble)) {
    test(s"by $what: each row is in one share, and shares are of similar size") {
      val unsafe = UnsafeProjection.create(columns.map(_.dataType).toArray)
      for (n <- Seq(2, 3, 5, 64)) {
        val found = shares(RowShare.of(columns), _.map(unsafe))(rows(columns.size), n)
        assert(found.flatten.sorted === (0L until 6000L))
        assert(found.map(_.size).max < 1.5 * 6000 / n, s"$n shares")
        assert(found.map(_.size).min > 0.5 * 6000 / n, s"$n shares")
      }
    }
  }

  test("ignores values that are not repeatable") {
    val share = RowShare.of(withDouble)
    val unsafe = UnsafeProjection.create(withDouble.map(_.dataType).toArray)
    val found = Seq[Int => Double](_.toDouble, _ / 7.0).map { double =>
      shares(share, _.map(unsafe))(rows(5, double), 4)
    }
    assert(found.head === found(1))
  }

  test("cannot divide rows that differ only in the key") {
    val double = attribute("d", DoubleType)
    assert(RowShare.possible(plain, Seq(key)))
    assert(!RowShare.possible(Seq(key), Seq(key)))
    assert(!RowShare.possible(Seq(key, double, attribute("a", ArrayType(LongType))), Seq(key)))
  }
}
