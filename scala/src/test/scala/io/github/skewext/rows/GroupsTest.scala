package io.github.skewext.rows

import scala.collection.mutable

import io.github.skewext.MultiJoinTest

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.{DataType, IntegerType, StringType}
import org.apache.spark.unsafe.types.UTF8String

/** Rows, and the parts that bring them together by key, without a query around them. */
trait GroupsTest extends MultiJoinTest {

  protected val types: Array[DataType] = Array(IntegerType, StringType)

  protected type Input = Seq[(Int, String)]

  protected def keys(n: Int, hashBits: Int = 64): JoinKeys =
    JoinKeys(Seq.fill(n)(Seq(BoundReference(0, IntegerType, nullable = true))), hashBits)

  protected def rowsOf(input: Input): Iterator[UnsafeRow] = {
    val projection = UnsafeProjection.create(types)
    input.iterator.map { case (k, v) => projection(InternalRow(k, UTF8String.fromString(v))) }
  }

  protected def shown(row: UnsafeRow): Any =
    if (row == null) null else (row.getInt(0), row.getString(1))

  /**
   * What should come out: for every key the product of its rows, absent inputs as null; and of
   * inputs of which a row is enough the key of one.
   */
  protected def expected(
      inputs: Seq[Input],
      single: Int => Boolean = _ => false): Map[Seq[Any], Int] = {
    val all = inputs.flatMap(_.map(_._1)).distinct.flatMap { key =>
      inputs.zipWithIndex.foldLeft(Seq(Seq.empty[Any])) { case (product, (input, i)) =>
        val rows: Seq[Any] = input.filter(_._1 == key)
        val matching = if (single(i)) rows.take(1).map(_ => key) else rows
        for (p <- product; m <- if (matching.isEmpty) Seq(null) else matching) yield p :+ m
      }
    }
    all.groupBy(identity).map { case (k, v) => k -> v.size }
  }

  /** All combinations; checks on the way that each key is one group. */
  protected def combinations(
      groups: KeyGroups,
      single: Int => Boolean = _ => false): Map[Seq[Any], Int] = {
    val met = mutable.Set.empty[Int]
    val counts = mutable.Map.empty[Seq[Any], Int].withDefaultValue(0)
    while (groups.nextGroup()) {
      val key = groups.rows.find(_ != null).get.getInt(0)
      assert(met.add(key), s"key $key comes as two groups")
      do {
        assert(groups.rows.filter(_ != null).forall(_.getInt(0) == key))
        counts(groups.rows.toSeq.zipWithIndex.map {
          case (row, i) if single(i) && row != null => key
          case (row, _) => shown(row)
        }) += 1
      } while (groups.nextCombination())
    }
    // Asked again, the end is still the end.
    assert(!groups.nextGroup())
    counts.toMap
  }

  protected val settings = GroupingSettings(sortAlways = false, Long.MaxValue, 4096)

  protected def gather(
      inputs: Seq[Input],
      settings: GroupingSettings = settings,
      hashBits: Int = 64,
      width: Int = 0,
      single: Int => Boolean = _ => false): SpillableGroups = {
    val groupKeys = keys(inputs.size, hashBits)
    val groups = new SpillableGroups(
      groupKeys,
      inputs.map(_ => 2).toArray,
      inputs.indices.map(single).toArray,
      settings)
    inputs.zipWithIndex.foreach { case (input, i) =>
      rowsOf(input.map { case (k, v) => (k, v + "." * width) })
        .foreach(row => groups.insert(i, groupKeys.hash(i, row), row))
      groups.finishInput(i)
    }
    groups
  }
}
