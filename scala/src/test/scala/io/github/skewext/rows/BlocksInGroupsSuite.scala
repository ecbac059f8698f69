package io.github.skewext.rows

import io.github.skewext.shuffle.{BlocksOf, ShuffledColumns}
import org.apache.spark.sql.skewext.{TestMemory, TestTask}


import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/** Rows that come as blocks of columns, and are copied column by column: as if they came by row. */
class BlocksInGroupsSuite extends GroupsTest {

  /** A key that is null is `Null`. */
  private val Null = -1

  private def blocks(input: Input, width: Int): ShuffledColumns =
    BlocksOf(
      types.toSeq,
      input.iterator.map { case (k, v) => Seq(if (k == Null) null else k, v + "." * width) },
      ofBlock = 300)

  /** The groups of rows whose keys are not null, and how many came by block. */
  private def gatherBlocks(
      inputs: Seq[Input],
      settings: GroupingSettings = settings,
      hashBits: Int = 64,
      width: Int = 0): (SpillableGroups, Long) = {
    val groupKeys = keys(inputs.size, hashBits)
    val groups =
      new SpillableGroups(
        groupKeys,
        inputs.map(_ => 2).toArray,
        inputs.map(_ => false).toArray,
        settings)
    var byBlock = 0L
    inputs.zipWithIndex.foreach { case (input, i) =>
      val columns = blocks(input, width)
      byBlock += groups.insertBlocks(i, columns)
      while (columns.hasNext) {
        val row = columns.next().asInstanceOf[UnsafeRow]
        if (!groupKeys.hasNull(i, row)) groups.insert(i, groupKeys.hash(i, row), row)
        byBlock += groups.insertBlocks(i, columns)
      }
      groups.finishInput(i)
    }
    (groups, byBlock)
  }

  private def inputs(rows: Int, keys: Int): Seq[Input] =
    (0 until 3).map(i => (0 until rows).map(r => (r * (i + 3)) % keys + i -> s"$i-$r"))

  private def inTask(memory: TestMemory)(body: => Unit): Unit = TestTask.run(memory)(_ => body)

  test("all rows come by block, with hashes of any number of bits") {
    for (bits <- Seq(64, 3, 0)) inTask(TestMemory.limited(Long.MaxValue)) {
      val all = inputs(1000, 700)
      val (groups, byBlock) = gatherBlocks(all, hashBits = bits)
      assert(byBlock === 3000)
      assert(combinations(groups.result()) === expected(all))
      assert(groups.spillSize === 0)
    }
  }

  test("off the heap") {
    inTask(TestMemory.offHeap(32 << 20)) {
      val all = inputs(500, 300)
      val (groups, byBlock) = gatherBlocks(all)
      assert(byBlock === 1500)
      assert(combinations(groups.result()) === expected(all))
    }
  }

  test("blocks with a null key come by row, and those after them by block") {
    inTask(TestMemory.limited(Long.MaxValue)) {
      val all = inputs(900, 500)
      val withNulls = all.map(in => in.patch(400, Seq(Null -> "null"), 0))
      val (groups, byBlock) = gatherBlocks(withNulls)
      assert(byBlock > 1500 && byBlock < 2700)
      assert(combinations(groups.result()) === expected(all))
    }
  }

  test("when memory ends within a block, or so many rows are here, the others are sorted") {
    val all = inputs(900, 500)
    for (limit <- Seq(600L << 10, 800L << 10)) inTask(TestMemory.limited(limit)) {
      val (groups, byBlock) = gatherBlocks(all, width = 300)
      assert(byBlock > 0 && byBlock < 2700, limit)
      val wide = all.map(_.map { case (k, v) => k -> (v + "." * 300) })
      assert(combinations(groups.result()) === expected(wide))
    }
    for (most <- Seq(0L, 299L, 300L, 1000L)) inTask(TestMemory.limited(Long.MaxValue)) {
      val (groups, byBlock) = gatherBlocks(all, settings.copy(maxRowsInMemory = most))
      assert(byBlock <= most)
      assert(combinations(groups.result()) === expected(all))
    }
  }

  test("skips rows whose keys the slice lacks, except false positives of the filter") {
    inTask(TestMemory.limited(Long.MaxValue)) {
      val slice = (0 until 700).map(r => r % 7 * 100 -> s"s$r")
      val other = (0 until 2000).map(r => r -> s"o$r")
      val groupKeys = keys(2, hashBits = 64)
      val groups = new SpillableGroups(groupKeys, Array(2, 2), Array(false, false), settings)
      val ofSlice = KeyFilter.ofBytes(1 << 16)
      assert(groups.insertBlocks(0, blocks(slice, 0), added = ofSlice) === 700)
      groups.finishInput(0)
      assert(groups.insertBlocks(1, blocks(other, 0), wanted = ofSlice) === 2000)
      groups.finishInput(1)
      val found = combinations(groups.result())
      val matched = expected(Seq(slice, other.filter { case (k, _) => k % 100 == 0 && k < 700 }))
      assert(matched.toSet.subsetOf(found.toSet))
      // Seven keys are few for 16,384 bits.
      assert(found.size < matched.size + 20)
    }
  }
}
