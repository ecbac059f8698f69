package io.github.skewext.skew.plan

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.execution.{CoalescedPartitionSpec, PartialReducerPartitionSpec}

/** The reads of a split, and the tasks that are found from them. */
class SkewSplitsSuite extends AnyFunSuite {

  test("reads that Spark has coalesced after the split") {
    val slices =
      Seq(Slice(0, 2, 0, 1, 50, 50), Slice(2, 3, 0, 2, 30, 60), Slice(2, 3, 1, 2, 30, 60))
    val splits = SkewSplits(Seq(PartitionSplit(3, 1, slices, residual = true, SplitCost(0, 0))))
    assert(splits.describe === "1 partition in 3 pieces, 1 residual")
    val bytes = Seq(IndexedSeq(1L, 2L, 0L, 4L, 5L, 6L), IndexedSeq(1L, 2L, 0L, 110L, 5L, 6L))
    def read(from: Int, until: Int, i: Int) =
      CoalescedPartitionSpec(from, until, (from until until).map(bytes(i)).sum)
    val ranges = Seq(CoalescedPartitionSpec(0, 2), CoalescedPartitionSpec(2, 6))
    val first = splits.reads(ranges, bytes, splitLast = false)
    // The partitions in their order, as Spark may read them.
    val reads = first.map(r => r.slice(4, 6) ++ r.take(4) ++ r.drop(6))
    assert(reads.head === Seq(0 -> 2, 2 -> 3, 3 -> 4, 3 -> 4, 3 -> 4, 3 -> 4, 4 -> 6).map {
      case (from, until) => read(from, until, 0)
    })
    assert(
      reads(1) === Seq(
        read(0, 2, 1),
        read(2, 3, 1),
        read(3, 4, 1),
        PartialReducerPartitionSpec(3, 0, 2, 50),
        PartialReducerPartitionSpec(3, 2, 3, 60),
        PartialReducerPartitionSpec(3, 2, 3, 60),
        read(4, 6, 1)))
    val tasks = splits.tasks(reads)
    val expected = SplitTask.Residual(1, Some(3), TaskShare(0, 4)) +:
      slices.zipWithIndex.map { case (s, i) => SplitTask.Piece(1, s, TaskShare(i + 1, 4)) }
    assert(splits.tasks(first) === expected ++ Seq.fill(3)(SplitTask.Whole))
    assert(tasks === (SplitTask.Whole +: SplitTask.Whole +: expected :+ SplitTask.Whole))
    // Other partitions may have been put together, or left out as they are empty.
    assert(splits.tasks(reads.map(_.patch(1, Nil, 1))).size === 6)
    // But no task of the split may be missing, doubled, or changed.
    for (broken <- Seq(
        reads.map(_.patch(2, Nil, 1)),
        reads.map(_.patch(5, Nil, 1)),
        reads.map(r => r.take(4) ++ r.drop(3)),
        reads.map(r => r.take(2) ++ r.drop(3) :+ r(2) :+ r(2)),
        Seq(reads.head, reads.head),
        // A slice of a partition that was not split.
        Seq(
          reads.head.init :+ read(4, 5, 0),
          reads(1).init :+ PartialReducerPartitionSpec(4, 0, 1, 5)),
        reads.reverse)) {
      intercept[IllegalStateException](splits.tasks(broken))
    }
  }
}
