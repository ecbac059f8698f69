package io.github.skewext.skew.plan

import io.github.skewext.join.InputRole.{Optional, Required}

/** The decisions about splits by how much comes out of a partition. */
class SkewPlannerOutputSuite extends SkewPlannerTest {

  /** Out of partition 1 come so many bytes, that are divided with rows of these inputs. */
  private def output(bytes: Double, inputs: Seq[Int], of: Int = 2): IndexedSeq[PartitionOutput] = {
    val none = PartitionOutput(0, Seq.fill(of)(0.0), Seq.fill(of)(0.0))
    val hot = PartitionOutput(
      bytes,
      (0 until of).map(i => if (inputs.contains(i)) bytes else 0.0),
      (0 until of).map(i => if (inputs.contains(i)) 1000.0 else 0.0))
    IndexedSeq(none, hot, none, none)
  }

  test("slices a small partition with a large output by rows, across blocks") {
    val inputs = Seq(input(Optional, 10, 20, 10), input(Optional, 30, 10))
    assert(planned(inputs, settings) === Left(SkewReason.NotSkewed))
    val split = only(planned(inputs, settings, output(12000, Seq(0, 1))))
    assert((split.partition, split.byOutput, split.residual) === ((1, true, true)))
    // (80 + 0.05 * 12000) / 64, rounded up.
    assert(
      split.slices.map(s => (s.startMap, s.endMap, s.share, s.shares, s.bytesRead)) ===
        (0 until 11).map(share => (0, if (split.input == 0) 3 else 2, share, 11, 40)))
    assert(split.slices.map(_.bytes).sum === 40)
    assert(split.cost.rereadBytes === 10 * 80 + 80)
    assert(split.cost.longestTask < 40 + 40 + 0.05 * 12000 / 10)
  }

  test("estimated output is written as well where tasks write a file each") {
    val inputs = Seq(input(Optional, 40), input(Optional, 40))
    def slices(settings: SkewSettings) =
      only(planned(inputs, settings, output(12000, Seq(0, 1)))).slices.size
    assert(slices(settings) === 11)
    assert(slices(settings.copy(files = Some(TaskFiles.One))) === 11)
    assert(slices(settings.copy(files = Some(TaskFiles.OneForEachValue))) === 2)
  }

  test("output: no more than usual, too few rows, slices that would read too much again") {
    val inputs = Seq(input(Optional, 20, 20), input(Optional, 40))
    assert(planned(inputs, settings, output(256, Seq(0, 1))) === Left(SkewReason.NotSkewed))
    val everywhere = IndexedSeq.fill(4)(output(12000, Seq(0, 1))(1))
    assert(planned(inputs, settings, everywhere) === Left(SkewReason.NotSkewed))
    val fewRows = output(12000, Seq(0, 1)).map(_.copy(hotRows = Seq(24, 16)))
    assert(only(planned(inputs, settings, fewRows)).slices.size === 3)
    assert(
      only(
        planned(inputs, settings.copy(maxSlices = 5), output(12000, Seq(0, 1)))).slices.size === 5)
    val large = Seq(input(Optional, 240), input(Optional, 240))
    val reread = only(planned(large, settings, output(24000, Seq(0, 1))))
    assert(reread.slices.size > 2 && reread.slices.size < (480 + 1200) / 64)
    assert(
      planned(large, settings.copy(maxRereadFactor = 1), output(9000, Seq(0, 1))) ===
        Left(SkewReason.TooMuchReread))
    assert(
      planned(large, settings.copy(minGain = 9), output(9000, Seq(0, 1))) ===
        Left(SkewReason.LittleGain))
  }

  test("output skew: slices distinguishable rows, else blocks, else nothing") {
    val alike = input(Optional, false, 20, 20, 20)
    val alikeOneBlock = input(Optional, false, 60)
    val cuttable = input(Optional, 60)
    val hot = output(12000, Seq(0, 1))
    for ((inputs, chosen) <- Seq(Seq(alike, cuttable) -> 1, Seq(cuttable, alike) -> 0)) {
      val split = only(planned(inputs, settings, hot))
      assert(split.input === chosen)
      assert(split.slices.forall(_.shares > 1))
    }
    val blocks = only(planned(Seq(alikeOneBlock, alike), settings, hot))
    assert(blocks.input === 1)
    assert(blocks.slices.map(s => (s.startMap, s.endMap)) === Seq((0, 1), (1, 2), (2, 3)))
    assert(
      planned(Seq(alikeOneBlock, alikeOneBlock), settings, hot) ===
        Left(SkewReason.OneBlock))
    // An input without rows of the key divides nothing.
    val three = Seq(input(Optional, 60), input(Required, 60), input(Optional, 60))
    assert(only(planned(three, settings, output(12000, Seq(1, 2), of = 3))).input > 0)
    val aggregated = Seq(cuttable.copy(sliceable = false), cuttable.copy(sliceable = false))
    assert(planned(aggregated, settings, hot) === Left(SkewReason.InputNotSliceable))
  }

  test("large input and large output: smaller slices") {
    val inputs = Seq(input(Required, 100, 100, 100, 100), input(Required, 100))
    val bySize = only(planned(inputs, settings))
    val both = only(planned(inputs, settings, output(30000, Seq(0, 1))))
    assert(!bySize.byOutput)
    assert(both.slices.size > bySize.slices.size)
    assert(both.cost.longestTask > bySize.cost.longestTask)
    // The skewed input is not the one that divides the output: that comes out of one task.
    val other = Seq(
      input(Required, 100, 100, 100, 100),
      input(Required, false, 20),
      input(Required, false, 20))
    assert(
      planned(other, settings, output(30000, Seq(1, 2), of = 3)) ===
        Left(SkewReason.LittleGain))
  }
}
