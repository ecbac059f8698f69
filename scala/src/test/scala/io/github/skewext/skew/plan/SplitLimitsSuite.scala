package io.github.skewext.skew.plan

import io.github.skewext.join.InputRole.{Optional, Required}

/** The limits that decide, alone and together, and the splits with the values that they name. */
class SplitLimitsSuite extends SkewPlannerTest {

  private val mib = 1024L * 1024

  /** One block that every slice reads whole, as one map task wrote it. */
  private val oneBlock = Seq(input(Optional, 96 * mib), input(Optional, 2 * mib))
  private val blocks = Seq(input(Required, Seq.fill(96)(mib): _*), input(Required, 8 * mib))

  private val usual = settings.copy(thresholdBytes = 8 * mib, advisoryBytes = 4 * mib)

  private def limitOf(inputs: Seq[SkewInput], settings: SkewSettings): Option[SkewReason.Detailed] =
    SkewPlanner.plan(inputs, settings).fold(Some(_), _.limit)

  private def longestOf(inputs: Seq[SkewInput], settings: SkewSettings): Double =
    SkewPlanner
      .plan(inputs, settings)
      .fold(_ => inputs.map(_.bytes(1)).sum.toDouble, _.partitions.map(_.cost.longestTask).max)

  /** The settings with the values that a limit names. */
  private def following(limit: SkewReason.Detailed, settings: SkewSettings): SkewSettings = {
    val named = limit.detail.toSeq.flatMap(_.split("; "))
    named.foldLeft(settings) {
      case (s, Factor(value)) => s.copy(maxRereadFactor = value.toDouble)
      case (s, Slices(value)) => s.copy(maxSlices = value.toInt)
      case (s, Size(value, unit)) =>
        s.copy(advisoryBytes = value.toLong * Map("MB" -> mib, "KB" -> 1024L, "b" -> 1L)(unit))
      case (s, Gain(value)) => s.copy(minGain = value.toDouble)
      case (_, other) => fail(other)
    }
  }

  private val Factor = "maxRereadFactor is [0-9.]+, ([0-9.]+) is enough for [0-9]+ slices".r
  private val Slices = "maxSlices is [0-9]+, ([0-9]+) is enough".r
  private val Size =
    "advisoryPartitionSizeInBytes is [0-9]+[A-Za-z]+, ([0-9]+)([A-Za-z]+) is small enough".r
  private val Gain = "the gain is ([0-9.]+), min_gain is [0-9.]+".r

  test("the limit that decides is named, and not the one that fails last") {
    import SkewReason._
    for ((inputs, changed, wanted, values) <- Seq(
        // Enough slices would read the block too often: before, the reason was the small gain.
        (oneBlock, usual.copy(maxRereadFactor = 2), TooMuchReread, Seq("maxRereadFactor")),
        (oneBlock, usual.copy(maxRereadFactor = 1), TooMuchReread, Seq("maxRereadFactor")),
        (oneBlock, usual.copy(maxRereadFactor = 4), TooMuchReread, Seq("maxRereadFactor")),
        (oneBlock, usual.copy(minGain = 9), LittleGain, Seq("the gain")),
        (blocks, usual.copy(maxSlices = 2, minGain = 3), FewSlices, Seq("maxSlices")),
        (blocks, usual.copy(maxSlices = 2), FewSlices, Seq("maxSlices")),
        (
          blocks,
          usual.copy(maxSlices = 2, maxRereadFactor = 1.1),
          TooMuchReread,
          Seq("maxSlices", "maxRereadFactor")),
        (blocks, usual.copy(advisoryBytes = 200 * mib), LargeSlices, Seq("advisory")),
        (
          blocks,
          usual.copy(advisoryBytes = 200 * mib, maxRereadFactor = 1),
          TooMuchReread,
          Seq("advisory", "maxRereadFactor")),
        (blocks, usual.copy(advisoryBytes = 200 * mib, minGain = 99), LittleGain, Nil),
        (
          blocks,
          usual.copy(files = Some(TaskFiles.One), advisoryBytes = 60 * mib, minGain = 3),
          LargeSlices,
          Seq("advisory")),
        (
          oneBlock,
          usual.copy(files = Some(TaskFiles.OneForEachValue), maxRereadFactor = 90, minGain = 2.5),
          FewFiles,
          Nil),
        (
          oneBlock,
          usual.copy(files = Some(TaskFiles.OneForEachValue), minGain = 2.5),
          FewFiles,
          Seq("maxRereadFactor")))) {
      val Some(limit) = limitOf(inputs, changed)
      withClue(s"$changed: $limit: ") {
        assert(limit.reason === wanted)
        val named = limit.detail.toSeq.flatMap(_.split("; "))
        assert(named.size === values.size)
        named.zip(values).foreach { case (text, begin) => assert(text.startsWith(begin)) }
      }
    }
  }

  test("following the advice of a limit shortens the longest task until no limit remains") {
    val all = for {
      inputs <- Seq(oneBlock, blocks)
      factor <- Seq(1.0, 1.5, 4.0, 40.0)
      advisory <- Seq(200L, 60L, 4L, 1L)
      slices <- Seq(2, 256)
      gain <- Seq(1.0, 3.5)
    } yield (
      inputs,
      usual.copy(
        maxRereadFactor = factor,
        advisoryBytes = advisory * mib,
        maxSlices = slices,
        minGain = gain))
    var named = Set.empty[SkewReason]
    for ((inputs, first) <- all) {
      var (now, steps) = (first, 0)
      var limit = limitOf(inputs, now)
      // Without a value there is nothing to follow: the last step of each way.
      while (limit.exists(_.detail.isDefined)) {
        withClue(s"$first, then $now: $limit: ") {
          val next = following(limit.get, now)
          named += limit.get.reason
          assert(longestOf(inputs, next) < longestOf(inputs, now))
          assert(limitOf(inputs, next) !== limit)
          now = next
          limit = limitOf(inputs, now)
          steps += 1
          assert(steps < 9)
        }
      }
    }
    import SkewReason._
    assert(named === Set(TooMuchReread, FewSlices, LargeSlices, LittleGain))
  }

  test("a split that has the slices it should have names no limit") {
    val plan = SkewPlanner.plan(blocks, usual.copy(maxRereadFactor = 40))
    assert(plan.map(_.limit) === Right(None))
    assert(plan.map(_.suffix) === Right(""))
  }

  test("a split gives the reason why the longest partition is not shorter") {
    // Partition 2 cannot be cut, and takes longer than the pieces of partition 1.
    val two = SkewInput(
      Required,
      InputSizes(
        IndexedSeq(10L, 400L, 900L, 10L, 10L, 10L, 10L),
        p =>
          if (p == 1) Seq.fill(4)(100L).zipWithIndex.map { case (b, m) => MapBlocks(m, m + 1, b) }
          else Seq(MapBlocks(0, 1, 900))),
      cuttable = () => false)
    val other = SkewInput(Optional, InputSizes(IndexedSeq.fill(7)(10L)))
    val Right(splits) = SkewPlanner.plan(Seq(two, other), settings)
    assert(splits.partitions.map(_.partition) === Seq(1))
    assert(splits.limit.map(_.reason) === Some(SkewReason.OneBlock))
    assert(splits.suffix === s", not shorter: ${SkewReason.OneBlock.text}")
  }
}
