package io.github.skewext.skew.plan

import io.github.skewext.join.InputRole
import io.github.skewext.join.InputRole.{Excluded, Optional, Present, Required}

/** The decisions about splits by the sizes of partitions. */
class SkewPlannerSuite extends SkewPlannerTest {

  test("whole map blocks are packed into slices") {
    val split = only(
      planned(Seq(input(Optional, 60, 40, 24, 100, 64, 60, 5), input(Optional, 8, 2)), settings))
    assert((split.partition, split.input, split.residual) === ((1, 0, true)))
    // 40 and 24 are a slice together; 100 is cut in two; the small last one goes with its neighbour.
    assert(
      split.slices.map(s => (s.startMap, s.endMap, s.share, s.shares, s.bytes)) === Seq(
        (0, 1, 0, 1, 60),
        (1, 3, 0, 1, 64),
        (3, 4, 0, 2, 50),
        (3, 4, 1, 2, 50),
        (4, 5, 0, 1, 64),
        (5, 7, 0, 1, 65)))
    // Each piece reads the other input, the residual reads both, and the cut block is read twice.
    assert(split.cost.rereadBytes === 5 * 10 + (353 + 10) + 100)
  }

  private val oneFile = settings.copy(files = Some(TaskFiles.One), minGain = 1)
  private val fileOfValue = settings.copy(files = Some(TaskFiles.OneForEachValue), minGain = 1)

  test("tasks that write a file each have the advisory size to write") {
    val small = input(Optional, 8, 2)
    // 363 bytes are five files: four slices and the residual.
    val five =
      only(planned(Seq(input(Optional, 60, 40, 24, 100, 64, 60, 5), small), oneFile))
    assert(five.residual && five.slices.size >= 3 && five.tasks.size <= 5)
    // 13 slices of one block each would be of 50 bytes.
    val blocks = input(Required, Seq.fill(13)(50L): _*)
    def slices(other: SkewInput, settings: SkewSettings) =
      only(planned(Seq(blocks, other), settings.copy(maxRereadFactor = 9))).slices.size
    assert(slices(small, settings) === 13)
    assert((5 to 10).contains(slices(small, oneFile)))
    // What other inputs give is written, too, and what is only looked up is not.
    assert(slices(input(Optional, 250), oneFile) === 13)
    assert((5 to 10).contains(slices(input(Excluded, 250), oneFile)))
  }

  test("a block of one map task is cut where tasks write a file each") {
    def plan(role: InputRole, bytes: Long, advisory: Long) = only(
      planned(
        Seq(input(role, bytes), input(Optional, 10)),
        oneFile.copy(advisoryBytes = advisory, maxRereadFactor = 20)))
    assert(plan(Required, 640, 64).slices.size === 10)
    assert((5 to 9).contains(plan(Optional, 640, 64).slices.size))
    // Two pieces in any case, and the residual.
    val two = plan(Optional, 300, 190)
    assert(two.residual && two.slices.size === 2)
  }

  test("no more tasks write a file for each value than Spark would make, or two") {
    def slices(blocks: Long*) = only(
      planned(
        Seq(input(Required, blocks: _*), input(Optional, 10)),
        fileOfValue.copy(maxRereadFactor = 20))).slices.size
    assert(slices(640) === 2)
    // By size these were nine.
    assert(slices(200, 200, 200) === 3)
    assert(slices(60, 40, 24, 100, 64, 60, 5) === 5)
  }

  test("a partition is left whole for its files where more of them would be worth the split") {
    val inputs = Seq(input(Required, 300), input(Required, 100))
    val written = fileOfValue.copy(minGain = 1.5)
    assert(only(planned(inputs, settings)).slices.size === 4)
    assert(planned(inputs, written) === Left(SkewReason.FewFiles))
    assert(only(planned(inputs, written.copy(minGain = 1.2))).slices.size === 2)
    assert(planned(inputs, written.copy(minGain = 9)) === Left(SkewReason.LittleGain))
  }

  test("a block that cannot be cut is a slice of its own, or nothing is split") {
    val split =
      only(
        planned(
          Seq(input(Optional, false, 300, 60), input(Optional, 5)),
          settings
            .copy(minGain = 1)))
    assert(split.slices.map(_.bytes) === Seq(300, 60))
    assert(
      planned(Seq(input(Optional, false, 400), input(Optional, 5)), settings)
        === Left(SkewReason.OneBlock))
    assert(
      only(planned(Seq(input(Optional, 400), input(Optional, 5)), settings)).slices
        .map(s => (s.startMap, s.endMap)) === Seq.fill(3)((0, 1)))
  }

  test("tasks that share a block read all of it, each: no more of them than may read it") {
    def plan(role: InputRole, factor: Double) =
      planned(Seq(input(role, 6400), input(Optional, 10)), settings.copy(maxRereadFactor = factor))
    // Slices of 64 bytes would be 100, and read 641,000 bytes.
    val four = only(plan(Required, 4))
    assert(
      four.slices.map(s => (s.share, s.shares, s.bytes, s.bytesRead)) ===
        (0 until 4).map((_, 4, 1600, 6400)))
    assert((four.cost.work, four.cost.rereadBytes) === ((4 * 6410.0, 3 * 6410)))
    // The residual reads it as well.
    val three = only(plan(Optional, 4))
    assert((three.slices.size, three.residual) === ((3, true)))
    assert((three.cost.work, three.cost.rereadBytes) === ((4 * 6410.0, 3 * 6410)))
    assert(only(plan(Required, 8)).slices.size === 7)
    assert(plan(Required, 1.9) === Left(SkewReason.TooMuchReread))
    // As many map tasks as slices: nothing is read twice but the other input.
    val blocks = input(Required, Seq.fill(100)(64L): _*)
    val whole = only(planned(Seq(blocks, input(Optional, 10)), settings))
    assert((whole.slices.size, whole.cost.rereadBytes) === ((100, 99 * 10)))
  }

  test("does not split if another input must not be replicated") {
    val large = input(Optional, 100, 100, 100, 100)
    val small = input(Optional, 8, 2)
    val once = small.copy(replicable = false)
    assert(planned(Seq(large, once), settings) === Left(SkewReason.MergeTarget))
    assert(planned(Seq(large, small, once), settings) === Left(SkewReason.MergeTarget))
    assert(only(planned(Seq(large, small), settings)).input === 0)
    // The input itself may be sliced, also where another one is larger.
    val largest = input(Optional, 200, 200, 200, 200)
    val both = Seq(largest, large.copy(replicable = false))
    assert(only(planned(both, settings.copy(minGain = 1))).input === 1)
    assert(only(planned(Seq(largest, large), settings.copy(minGain = 1))).input === 0)
    // Of an input that only says which keys come out, no rows do.
    val asked = Seq(once, input(Excluded, 100, 100, 100, 100))
    assert(only(planned(asked, settings)).slices === Nil)
  }

  test("a residual only where the input can lack a key of another one") {
    def residual(roles: InputRole*) = only(
      planned(
        input(roles.head, 100, 100, 100, 100) +: roles.tail.map(input(_, 10)),
        settings)).residual
    assert(residual(Optional, Optional))
    assert(residual(Optional, Required))
    assert(residual(Optional, Excluded, Optional))
    assert(residual(Optional, Present, Optional))
    assert(!residual(Required, Optional))
    assert(!residual(Required, Present))
    assert(!residual(Optional, Excluded))
    assert(!residual(Optional, Present))
    // The other input has no rows there.
    val empty = input(Optional)
    assert(!only(planned(Seq(input(Optional, 100, 100, 100, 100), empty), settings)).residual)
  }

  test("one task reads only the keys of an excluded input") {
    for (role <- Seq(Excluded, Present)) {
      val split = only(planned(Seq(input(Required, 10), input(role, 200, 200)), settings))
      assert((split.input, split.slices, split.residual) === ((1, Nil, true)))
      assert(split.cost.rereadBytes === 0)
      assert(split.tasks.map(_.roles(Seq(Required, role))) === Seq(Seq(Required, role)))
    }
  }

  test("keys are marked before the join where the residual would take longer than anything else") {
    val marking = settings.copy(marking = true)
    val hot = input(Optional, Seq.fill(20)(60L): _*)
    val split = only(planned(Seq(hot, input(Optional, 10)), marking))
    // Larger slices than those of the pieces, as looking at keys is not much work.
    assert(split.slices.map(_.bytes) === Seq.fill(20)(60))
    assert(split.marking.map(_.bytes) === Seq.fill(6)(180) :+ 120)
    // A piece after a task that marks; the residual alone would be 370.
    assert(split.cost.longestTask === 0.3 * (180 + 10) + 60 + 10)
    // The hot input twice, the other one 20 times and 7 times; and the residual reads the other one.
    assert(split.cost.rereadBytes === (1200 + 20 * 10) + (1200 + 7 * 10) + 10 - (1200 + 10))
    assert(only(planned(Seq(hot, input(Optional, 10)), settings)).cost.longestTask === 370)
    // Only the keys of an input that is not shown matter: no pieces.
    for (role <- Seq(Excluded, Present)) {
      val keysOnly =
        only(planned(Seq(input(Required, 10), input(role, Seq.fill(20)(60L): _*)), marking))
      assert(keysOnly.slices.isEmpty)
      assert(keysOnly.marking.map(_.bytes) === Seq.fill(6)(180) :+ 120)
      assert(keysOnly.cost.longestTask === 0.3 * (180 + 10) + 10)
    }
    def notMarked(inputs: SkewInput*) = planned(inputs, marking) match {
      case Right(splits) => splits.forall(_.marking.isEmpty)
      case Left(_) => true
    }
    // Nothing is to be known; little to be gained; all tasks would read the one block.
    assert(notMarked(hot.copy(role = Required), input(Optional, 10)))
    assert(notMarked(input(Optional, 100, 100, 100, 100), input(Optional, 10)))
    assert(notMarked(input(Optional, 1200), input(Optional, 10)))
    assert(notMarked(input(Excluded, 1200), input(Required, 10)))
    assert(notMarked(hot.copy(role = Excluded, sliceable = false), input(Required, 10)))
    assert(
      notMarked(
        hot.copy(role = Excluded, sizes = hot.sizes.copy(wholeBytes = Some(hot.bytes))),
        input(Required, 10)))
  }

  test("rows that marking tasks send count as work of the residual") {
    def plan(sent: Double) = {
      val hot =
        input(Present, Seq.fill(20)(60L): _*).copy(dropCost = 1.0, candidates = _ => sent)
      planned(Seq(input(Required, 10), hot), settings.copy(marking = true))
    }
    assert(only(plan(0)).cost.longestTask === (60 + 10) + 10)
    assert(only(plan(10)).cost.longestTask === (60 + 10) + 10 + 20 * 10)
    assert(only(plan(10)).marking.size === 20)
    // Nearly all rows would be sent.
    assert(plan(60) === Left(SkewReason.LittleGain))
  }

  test("plans no residual and no marks if inputs are not repeatable") {
    val (hot, small) = (input(Optional, 100, 100, 100, 100), input(Optional, 10))
    for (inputs <- Seq(
        Seq(hot, small.copy(stable = Stability(keys = () => false))),
        Seq(hot.copy(stable = Stability(keys = () => false)), small))) {
      assert(planned(inputs, settings) === Left(SkewReason.NotStable))
      // Without a residual, each row of the one input is in one piece.
      val split = only(planned(inputs.head.copy(role = Required) +: inputs.tail, settings))
      assert(split.slices.size >= 4 && !split.residual)
    }
    val keys = input(Excluded, Seq.fill(20)(60L): _*)
    def marked(stable: Boolean) = only(
      planned(
        Seq(input(Required, 10).copy(stable = Stability(keys = () => stable)), keys),
        settings.copy(marking = true))).marking
    assert(marked(stable = true).nonEmpty && marked(stable = false).isEmpty)
  }

  test("divides null keys by the content of rows, if that is repeatable") {
    val (hot, small) = (input(Optional, 100, 100, 100, 100), input(Optional, 10))
    def split(inputs: SkewInput*) = only(planned(inputs, settings))
    assert(split(hot, small).tasks.map(nullKeysOf).toSet.size === 1 + split(hot, small).slices.size)
    assert(split(hot.copy(stable = Stability(rows = () => false)), small).dividesNullKeys)
    val asRead = split(hot, small.copy(stable = Stability(rows = () => false)))
    assert(asRead.residual && asRead.tasks.map(nullKeysOf).toSet === Set(TaskShare.NoRows))
  }

  private def nullKeysOf(task: SplitTask): TaskShare = task match {
    case SplitTask.Piece(_, _, nulls) => nulls
    case SplitTask.Residual(_, _, nulls) => nulls
    case SplitTask.Whole => fail()
  }

  test("whether inputs may change is asked where something is skewed") {
    def asked(blocks: Long*): Set[String] = {
      var asked = Set.empty[String]
      def answer(what: String) = { asked += what; true }
      val one = input(Optional, blocks: _*)
        .copy(
          stable = Stability(keys = () => answer("stable")),
          cuttable = () => answer("cuttable"))
      planned(Seq(one, input(Optional, 10)), settings)
      asked
    }
    assert(asked(10).isEmpty)
    assert(asked(100, 100, 100, 100) === Set("stable", "cuttable"))
  }

  test("estimates the bytes of a partition from counted rows") {
    // 400 bytes, of rows that would be 1,000 elsewhere.
    val hot = weighted(input(Optional, 120, 80, 80, 120), 1.0, 2.5, 1.0, 1.0)
    def plan(input: SkewInput) =
      planned(Seq(input, this.input(Optional, 10)), settings.copy(thresholdBytes = 512))
    assert(plan(weighted(hot)) === Left(SkewReason.NotSkewed))
    val split = only(plan(hot))
    // Slices of 100 of 1,000 bytes, as those of 64 would read too much; what is said of them is what
    // they have.
    assert(
      split.slices.map(s => (s.startMap, s.share, s.shares, s.bytes, s.bytesRead)) ===
        Seq(0 -> 120, 1 -> 80, 2 -> 80, 3 -> 120).flatMap { case (m, all) =>
          (0 until all / 40).map(i => (m, i, all / 40, 40L, all.toLong))
        })
    assert(split.cost.rereadBytes === 2 * 3 * 120 + 2 * 2 * 80 + 10 * 10 + 400 + 10 - (400 + 10))
    // What is planned is the same with as many bytes.
    val large = only(plan(hot.weighed))
    assert(
      (split.cost.longestTask, split.cost.work) === ((large.cost.longestTask, large.cost.work)))
    assert(large.slices.map(_.bytes).sum === 1000)
    // Marks are found in slices of the same kind.
    val marking = settings.copy(marking = true)
    val keys = weighted(input(Excluded, Seq.fill(20)(6L): _*), 1, 10.0, 1, 1)
    val marked = only(planned(Seq(input(Required, 10), keys), marking))
    assert(marked.slices.isEmpty)
    assert(marked.marking.map(_.bytes) === Seq.fill(6)(18) :+ 12)
    assert(marked.cost.rereadBytes === 120 + 7 * 10 + 10 - (120 + 10))
    // More rows, but not enough.
    val few = weighted(hot, 1.0, 1.25, 1.0, 1.0)
    assert(plan(few) === Left(SkewReason.NotSkewed))
  }

  test("does not divide blocks of tiny, equal rows by their content") {
    def plan(weight: Double, blocks: Long*) = planned(
      Seq(weighted(input(Required, blocks: _*), 1.0, weight, 1.0, 1.0), input(Optional, 10)),
      settings)
    assert(only(plan(8, 30, 30)).slices.map(s => (s.startMap, s.shares)) === Seq(0 -> 1, 1 -> 1))
    assert(plan(8, 60) === Left(SkewReason.OneBlock))
    assert(only(plan(3, 120)).slices.forall(_.shares > 1))
  }

  test("a partition of a shuffle that compresses unusually well has more bytes for the planner") {
    val small = input(Optional, 10)
    def plan(ratio: Double, blocks: Long*) = {
      val hot = input(Required, blocks: _*)
      val inMemory = ratio * hot.bytes.sum
      val weights = RowWeights.unpacked(IndexedSeq.empty, hot.bytes, inMemory)
      planned(Seq(weighted(hot, weights: _*), small), settings)
    }
    val split = only(plan(80, 40, 20, 40))
    // The rows differ, so that several tasks may share a block.
    val large = only(planned(Seq(input(Required, 320, 160, 320), small), settings))
    assert(large.slices.exists(_.shares > 1))
    def parts(of: PartitionSplit) = of.slices.map(s => (s.startMap, s.endMap, s.share, s.shares))
    assert(parts(split) === parts(large))
    assert(
      (split.cost.longestTask, split.cost.work) === ((large.cost.longestTask, large.cost.work)))
    assert(split.slices.map(_.bytes).sum === 100)
    // As much in memory as usual, or nothing known.
    for (ratio <- Seq(0, 1, 10.0); blocks <- Seq(Seq(200L, 150L), Seq(100L))) {
      val usual = planned(Seq(input(Required, blocks: _*), small), settings)
      assert(plan(ratio, blocks: _*) === usual)
    }
    assert(plan(10, 100) === Left(SkewReason.NotSkewed))
    // 250 bytes are below the threshold, and 40 are not five times as many as others have.
    assert(plan(25, 100) === Left(SkewReason.NotSkewed))
    assert(plan(999, 40) === Left(SkewReason.NotSkewed))
  }

  test("an aggregated input is read whole, and vetoes if it is the skewed one") {
    val aggregated = input(Optional, 100, 100, 100, 100).copy(sliceable = false)
    assert(
      planned(Seq(aggregated, input(Optional, 10)), settings)
        === Left(SkewReason.InputNotSliceable))
    val small = input(Optional, 10).copy(sliceable = false)
    assert(only(planned(Seq(small, input(Optional, 100, 100, 100, 100)), settings)).input === 1)
  }

  test("an input of several shuffles: one is sliced, and the others are read whole") {
    def of(role: InputRole, whole: Long*) =
      withSizes(input(role, 100, 100, 100, 100))(_.copy(wholeBytes = Some(whole.toIndexedSeq)))
    def plan(joined: SkewInput) =
      planned(Seq(joined, input(Optional, 10)), settings.copy(maxRereadFactor = 10))
    // Blocks are those of the shuffle that is sliced.
    val made = withSizes(of(Required, 0, 100, 0, 0))(_.copy(blocks = _ =>
      Seq.fill(5)(60L).zipWithIndex.map { case (b, m) =>
        MapBlocks(m, m + 1, b)
      }))
    val split = only(plan(made))
    assert(split.slices.map(_.bytes) === Seq.fill(5)(60))
    assert(split.cost.rereadBytes === 4 * (100 + 10))
    // All its shuffles weigh more; two tasks share a block of 120 now.
    val heavier = only(plan(weighted(made, 2.0, 2.0, 2.0, 2.0)))
    assert(heavier.cost.longestTask === 2 * 100 + 60 + 0.3 * 60 + 10)
    // The rows are in a shuffle that is read whole.
    assert(plan(of(Required, 0, 250, 0, 0)) === Left(SkewReason.InputNotSliceable))
    // To know its keys, they must be joined, which is all that there is to do.
    assert(plan(of(Optional, 0, 0, 0, 0)) === Left(SkewReason.LittleGain))
    val asked = of(Present, 0, 0, 0, 0).copy(sliceable = false)
    assert(planned(Seq(input(Required, 10), asked), settings) === Left(SkewReason.LittleGain))
  }

  test("slices the one of two skewed inputs whose slices end first") {
    val split = only(
      planned(
        Seq(input(Required, 300), input(Required, Seq.fill(40)(60L): _*)),
        settings.copy(maxRereadFactor = 20)))
    assert(split.input === 1)
    assert(split.slices.size === 40)
  }

  test("fewer slices where each would read much again") {
    def slices(other: Long, factor: Double) = only(
      planned(
        Seq(input(Required, Seq.fill(100)(64L): _*), input(Required, other)),
        settings.copy(maxRereadFactor = factor, minGain = 1))).slices.size
    assert(slices(10, 4) === 100)
    assert(slices(640, 100) === 100)
    assert((2 to 25).contains(slices(640, 3)))
    assert(
      planned(
        Seq(input(Required, Seq.fill(100)(64L): _*), input(Required, 6400)),
        settings.copy(maxRereadFactor = 1.2)) === Left(SkewReason.TooMuchReread))
  }

  test("no more slices than allowed, even where the wanted size is tiny") {
    val huge = input(Required, Seq.fill(3)(1L << 40): _*)
    val split = only(planned(Seq(huge, input(Required, 1)), settings.copy(maxSlices = 7)))
    assert((3 to 7).contains(split.slices.size))
  }

  test("nothing is split that is not skewed, or for a gain that is too small") {
    assert(
      planned(Seq(input(Optional, 100, 100), input(Optional, 10)), settings)
        === Left(SkewReason.NotSkewed))
    // Six times the median, but below the threshold; above the threshold, but not skewed.
    assert(
      planned(Seq(input(Optional, 60), input(Optional, 1)), settings)
        === Left(SkewReason.NotSkewed))
    val even = SkewInput(Optional, InputSizes(IndexedSeq.fill(4)(1000L)))
    assert(planned(Seq(even, even), settings) === Left(SkewReason.NotSkewed))
    // The residual alone is a third of the task.
    assert(
      planned(
        Seq(input(Optional, 200, 200), input(Optional, 10)),
        settings.copy(minGain = 3.5)) === Left(SkewReason.LittleGain))
  }
}
