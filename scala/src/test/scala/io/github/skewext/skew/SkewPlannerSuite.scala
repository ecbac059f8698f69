package io.github.skewext.skew

import io.github.skewext.execution.split.{MapBlocks, PartitionSplit, SkewSplits, Slice, SplitTask, TaskShare}
import io.github.skewext.plan.InputRole.{Excluded, Optional, Present, Required}
import io.github.skewext.plan.{InputRole, SkewReason, SkewSettings}
import org.scalacheck.Gen
import org.scalacheck.rng.Seed
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.execution.{CoalescedPartitionSpec, PartialReducerPartitionSpec}

/** The decisions about splits, without Spark; and a small interpreter that proves them right. */
class SkewPlannerSuite extends AnyFunSuite {

  private val settings = SkewSettings(
    factor = 5,
    thresholdBytes = 256,
    advisoryBytes = 64,
    maxSlices = 100,
    maxRereadFactor = 4,
    minGain = 1.5,
    marking = false)

  /** Four partitions; partition 1 has the bytes of these map blocks. */
  private def input(role: InputRole, blocks: Long*): SkewInput = input(role, true, blocks: _*)

  private def input(role: InputRole, cuttable: Boolean, blocks: Long*): SkewInput = SkewInput(
    role,
    IndexedSeq(10L, blocks.sum, 10L, 10L),
    _ => blocks.zipWithIndex.map { case (b, m) => MapBlocks(m, m + 1, b) },
    cuttable = cuttable)

  private def only(plan: Either[SkewReason, Seq[PartitionSplit]]): PartitionSplit = plan match {
    case Right(Seq(split)) => split
    case other => fail(s"Not one split: $other")
  }

  test("whole map blocks are packed into slices") {
    val split = only(
      SkewPlanner
        .plan(Seq(input(Optional, 60, 40, 24, 100, 64, 60, 5), input(Optional, 8, 2)), settings))
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
    assert(split.rereadBytes === 5 * 10 + (353 + 10) + 100)
  }

  test("a block that cannot be cut is a slice of its own, or nothing is split") {
    val split =
      only(
        SkewPlanner.plan(
          Seq(input(Optional, false, 300, 60), input(Optional, 5)),
          settings
            .copy(minGain = 1)))
    assert(split.slices.map(_.bytes) === Seq(300, 60))
    assert(
      SkewPlanner.plan(Seq(input(Optional, false, 400), input(Optional, 5)), settings)
        === Left(SkewReason.OneBlock))
    assert(
      only(SkewPlanner.plan(Seq(input(Optional, 400), input(Optional, 5)), settings)).slices
        .map(s => (s.startMap, s.endMap)) === Seq.fill(3)((0, 1)))
  }

  test("tasks that share a block read all of it, each: no more of them than may read it") {
    def plan(role: InputRole, factor: Double) = SkewPlanner.plan(
      Seq(input(role, 6400), input(Optional, 10)),
      settings.copy(maxRereadFactor = factor))
    // Slices of 64 bytes would be 100, and read 641,000 bytes.
    val four = only(plan(Required, 4))
    assert(
      four.slices.map(s => (s.share, s.shares, s.bytes, s.bytesRead)) ===
        (0 until 4).map((_, 4, 1600, 6400)))
    assert((four.work, four.rereadBytes) === ((4 * 6410.0, 3 * 6410)))
    // The residual reads it as well.
    val three = only(plan(Optional, 4))
    assert((three.slices.size, three.residual) === ((3, true)))
    assert((three.work, three.rereadBytes) === ((4 * 6410.0, 3 * 6410)))
    assert(only(plan(Required, 8)).slices.size === 7)
    assert(plan(Required, 1.9) === Left(SkewReason.TooMuchReread))
    // As many map tasks as slices: nothing is read twice but the other input.
    val blocks = input(Required, Seq.fill(100)(64L): _*)
    val whole = only(SkewPlanner.plan(Seq(blocks, input(Optional, 10)), settings))
    assert((whole.slices.size, whole.rereadBytes) === ((100, 99 * 10)))
  }

  test(
    "every slice meets all of the other inputs: not if one of them must not be in several tasks") {
    val large = input(Optional, 100, 100, 100, 100)
    val small = input(Optional, 8, 2)
    val once = small.copy(replicable = false)
    assert(SkewPlanner.plan(Seq(large, once), settings) === Left(SkewReason.MergeTarget))
    assert(SkewPlanner.plan(Seq(large, small, once), settings) === Left(SkewReason.MergeTarget))
    assert(only(SkewPlanner.plan(Seq(large, small), settings)).input === 0)
    // The input itself may be sliced, also where another one is larger.
    val largest = input(Optional, 200, 200, 200, 200)
    val both = Seq(largest, large.copy(replicable = false))
    assert(only(SkewPlanner.plan(both, settings.copy(minGain = 1))).input === 1)
    assert(only(SkewPlanner.plan(Seq(largest, large), settings.copy(minGain = 1))).input === 0)
    // Of an input that only says which keys come out, no rows do.
    val asked = Seq(once, input(Excluded, 100, 100, 100, 100))
    assert(only(SkewPlanner.plan(asked, settings)).slices === Nil)
  }

  test("a residual only where the input can lack a key of another one") {
    def residual(roles: InputRole*) = only(
      SkewPlanner.plan(
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
    assert(
      !only(SkewPlanner.plan(Seq(input(Optional, 100, 100, 100, 100), empty), settings)).residual)
  }

  test("of an input that is not shown only the keys are read, by one task") {
    for (role <- Seq(Excluded, Present)) {
      val split = only(SkewPlanner.plan(Seq(input(Required, 10), input(role, 200, 200)), settings))
      assert((split.input, split.slices, split.residual) === ((1, Nil, true)))
      assert(split.rereadBytes === 0)
      assert(split.tasks.map(_.roles(Seq(Required, role))) === Seq(Seq(Required, role)))
    }
  }

  test("keys are marked before the join where the residual would take longer than anything else") {
    val marking = settings.copy(marking = true)
    val hot = input(Optional, Seq.fill(20)(60L): _*)
    val split = only(SkewPlanner.plan(Seq(hot, input(Optional, 10)), marking))
    // Larger slices than those of the pieces, as looking at keys is not much work.
    assert(split.slices.map(_.bytes) === Seq.fill(20)(60))
    assert(split.marking.map(_.bytes) === Seq.fill(6)(180) :+ 120)
    // A piece after a task that marks; the residual alone would be 370.
    assert(split.longestTask === 0.3 * (180 + 10) + 60 + 10)
    // The hot input twice, the other one 20 times and 7 times; and the residual reads the other one.
    assert(split.rereadBytes === (1200 + 20 * 10) + (1200 + 7 * 10) + 10 - (1200 + 10))
    assert(only(SkewPlanner.plan(Seq(hot, input(Optional, 10)), settings)).longestTask === 370)
    // Only the keys of an input that is not shown matter: no pieces.
    for (role <- Seq(Excluded, Present)) {
      val keysOnly = only(
        SkewPlanner.plan(Seq(input(Required, 10), input(role, Seq.fill(20)(60L): _*)), marking))
      assert(keysOnly.slices.isEmpty)
      assert(keysOnly.marking.map(_.bytes) === Seq.fill(6)(180) :+ 120)
      assert(keysOnly.longestTask === 0.3 * (180 + 10) + 10)
    }
    def notMarked(inputs: SkewInput*) = SkewPlanner.plan(inputs, marking) match {
      case Right(splits) => splits.forall(_.marking.isEmpty)
      case Left(_) => true
    }
    // Nothing is to be known; little to be gained; all tasks would read the one block.
    assert(notMarked(hot.copy(role = Required), input(Optional, 10)))
    assert(notMarked(input(Optional, 100, 100, 100, 100), input(Optional, 10)))
    assert(notMarked(input(Optional, 1200), input(Optional, 10)))
    assert(notMarked(input(Excluded, 1200), input(Required, 10)))
    assert(notMarked(hot.copy(role = Excluded, sliceable = false), input(Required, 10)))
    assert(notMarked(hot.copy(role = Excluded, wholeBytes = Some(hot.bytes)), input(Required, 10)))
  }

  test("nothing about which tasks must agree is done with inputs that may change") {
    val (hot, small) = (input(Optional, 100, 100, 100, 100), input(Optional, 10))
    for (inputs <- Seq(
        Seq(hot, small.copy(stable = false)),
        Seq(hot.copy(stable = false), small))) {
      assert(SkewPlanner.plan(inputs, settings) === Left(SkewReason.NotStable))
      // Without a residual, each row of the one input is in one piece.
      val split = only(SkewPlanner.plan(inputs.head.copy(role = Required) +: inputs.tail, settings))
      assert(split.slices.size >= 4 && !split.residual)
    }
    val keys = input(Excluded, Seq.fill(20)(60L): _*)
    def marked(stable: Boolean) = only(
      SkewPlanner.plan(
        Seq(input(Required, 10).copy(stable = stable), keys),
        settings.copy(marking = true))).marking
    assert(marked(stable = true).nonEmpty && marked(stable = false).isEmpty)
  }

  test("where rows were counted, a partition has as many bytes as they would have in others") {
    // 100 bytes, of rows that would be 1,000 elsewhere.
    val hot = input(Optional, 30, 20, 20, 30).copy(weights = IndexedSeq(1.0, 10.0, 1.0, 1.0))
    assert(
      SkewPlanner.plan(Seq(hot.copy(weights = IndexedSeq.empty), input(Optional, 10)), settings)
        === Left(SkewReason.NotSkewed))
    val split = only(SkewPlanner.plan(Seq(hot, input(Optional, 10)), settings))
    // Slices of 100 of 1,000 bytes, as those of 64 would read too much; what is said of them is what
    // they have.
    assert(
      split.slices.map(s => (s.startMap, s.share, s.shares, s.bytes, s.bytesRead)) ===
        Seq(0 -> 30, 1 -> 20, 2 -> 20, 3 -> 30).flatMap { case (m, all) =>
          (0 until all / 10).map(i => (m, i, all / 10, 10L, all.toLong))
        })
    assert(split.rereadBytes === 2 * 3 * 30 + 2 * 2 * 20 + 10 * 10 + 100 + 10 - (100 + 10))
    // What is planned is the same as with as many bytes.
    val large = only(SkewPlanner.plan(Seq(hot.weighed, input(Optional, 10)), settings))
    assert((split.longestTask, split.work) === ((large.longestTask, large.work)))
    assert(large.slices.map(_.bytes).sum === 1000)
    // Marks are found in slices of the same kind.
    val marking = settings.copy(marking = true)
    val keys = input(Excluded, Seq.fill(20)(6L): _*).copy(weights = IndexedSeq(1, 10.0, 1, 1))
    val marked = only(SkewPlanner.plan(Seq(input(Required, 10), keys), marking))
    assert(marked.slices.isEmpty)
    assert(marked.marking.map(_.bytes) === Seq.fill(6)(18) :+ 12)
    assert(marked.rereadBytes === 120 + 7 * 10 + 10 - (120 + 10))
    // More rows, but not enough.
    val few = hot.copy(weights = IndexedSeq(1.0, 2.5, 1.0, 1.0))
    assert(SkewPlanner.plan(Seq(few, input(Optional, 10)), settings) === Left(SkewReason.NotSkewed))
  }

  test("an aggregated input is read whole, and vetoes if it is the skewed one") {
    val aggregated = input(Optional, 100, 100, 100, 100).copy(sliceable = false)
    assert(
      SkewPlanner.plan(Seq(aggregated, input(Optional, 10)), settings)
        === Left(SkewReason.InputNotSliceable))
    val small = input(Optional, 10).copy(sliceable = false)
    assert(
      only(SkewPlanner.plan(Seq(small, input(Optional, 100, 100, 100, 100)), settings)).input === 1)
  }

  test("an input of several shuffles: one is sliced, and the others are read whole") {
    def of(role: InputRole, whole: Long*) =
      input(role, 100, 100, 100, 100).copy(wholeBytes = Some(whole.toIndexedSeq))
    def plan(joined: SkewInput) =
      SkewPlanner.plan(Seq(joined, input(Optional, 10)), settings.copy(maxRereadFactor = 10))
    // Blocks are those of the shuffle that is sliced.
    val made = of(Required, 0, 100, 0, 0).copy(blocks = _ =>
      Seq.fill(5)(60L).zipWithIndex.map { case (b, m) =>
        MapBlocks(m, m + 1, b)
      })
    val split = only(plan(made))
    assert(split.slices.map(_.bytes) === Seq.fill(5)(60))
    assert(split.rereadBytes === 4 * (100 + 10))
    // The rows are in a shuffle that is read whole.
    assert(plan(of(Required, 0, 250, 0, 0)) === Left(SkewReason.InputNotSliceable))
    // To know its keys, they must be joined, which is all that there is to do.
    assert(plan(of(Optional, 0, 0, 0, 0)) === Left(SkewReason.LittleGain))
    val asked = of(Present, 0, 0, 0, 0).copy(sliceable = false)
    assert(
      SkewPlanner.plan(Seq(input(Required, 10), asked), settings) === Left(SkewReason.LittleGain))
  }

  test("of two skewed inputs that is sliced whose slices end first") {
    val split = only(
      SkewPlanner.plan(
        Seq(input(Required, 300), input(Required, Seq.fill(40)(60L): _*)),
        settings.copy(maxRereadFactor = 20)))
    assert(split.input === 1)
    assert(split.slices.size === 40)
  }

  test("fewer slices where each would read much again") {
    def slices(other: Long, factor: Double) = only(
      SkewPlanner.plan(
        Seq(input(Required, Seq.fill(100)(64L): _*), input(Required, other)),
        settings.copy(maxRereadFactor = factor, minGain = 1))).slices.size
    assert(slices(10, 4) === 100)
    assert(slices(640, 100) === 100)
    assert((2 to 25).contains(slices(640, 3)))
    assert(
      SkewPlanner.plan(
        Seq(input(Required, Seq.fill(100)(64L): _*), input(Required, 6400)),
        settings.copy(maxRereadFactor = 1.2)) === Left(SkewReason.TooMuchReread))
  }

  test("no more slices than allowed, even where the wanted size is tiny") {
    val huge = input(Required, Seq.fill(3)(1L << 40): _*)
    val split = only(SkewPlanner.plan(Seq(huge, input(Required, 1)), settings.copy(maxSlices = 7)))
    assert((3 to 7).contains(split.slices.size))
  }

  test("nothing is split that is not skewed, or for a gain that is too small") {
    assert(
      SkewPlanner.plan(Seq(input(Optional, 100, 100), input(Optional, 10)), settings)
        === Left(SkewReason.NotSkewed))
    // Six times the median, but below the threshold; above the threshold, but not skewed.
    assert(
      SkewPlanner.plan(Seq(input(Optional, 60), input(Optional, 1)), settings)
        === Left(SkewReason.NotSkewed))
    val even = SkewInput(Optional, IndexedSeq.fill(4)(1000L), _ => Nil)
    assert(SkewPlanner.plan(Seq(even, even), settings) === Left(SkewReason.NotSkewed))
    // The residual alone is a third of the task.
    assert(
      SkewPlanner.plan(
        Seq(input(Optional, 200, 200), input(Optional, 10)),
        settings.copy(minGain = 3.5)) === Left(SkewReason.LittleGain))
  }

  /** Out of partition 1 come so many bytes, that are divided with rows of these inputs. */
  private def output(bytes: Double, inputs: Seq[Int], of: Int = 2): IndexedSeq[PartitionOutput] = {
    val none = PartitionOutput(0, Seq.fill(of)(0.0), Seq.fill(of)(0.0))
    val hot = PartitionOutput(
      bytes,
      (0 until of).map(i => if (inputs.contains(i)) bytes else 0.0),
      (0 until of).map(i => if (inputs.contains(i)) 1000.0 else 0.0))
    IndexedSeq(none, hot, none, none)
  }

  test("a small partition of which much comes is cut by rows, all blocks together") {
    val inputs = Seq(input(Optional, 10, 20, 10), input(Optional, 30, 10))
    assert(SkewPlanner.plan(inputs, settings) === Left(SkewReason.NotSkewed))
    val split = only(SkewPlanner.plan(inputs, settings, output(12000, Seq(0, 1))))
    assert((split.partition, split.byOutput, split.residual) === ((1, true, true)))
    // (80 + 0.05 * 12000) / 64, rounded up.
    assert(
      split.slices.map(s => (s.startMap, s.endMap, s.share, s.shares, s.bytesRead)) ===
        (0 until 11).map(share => (0, if (split.input == 0) 3 else 2, share, 11, 40)))
    assert(split.slices.map(_.bytes).sum === 40)
    assert(split.rereadBytes === 10 * 80 + 80)
    assert(split.longestTask < 40 + 40 + 0.05 * 12000 / 10)
  }

  test("output: no more than usual, too few rows, slices that would read too much again") {
    val inputs = Seq(input(Optional, 20, 20), input(Optional, 40))
    assert(
      SkewPlanner.plan(inputs, settings, output(256, Seq(0, 1))) === Left(SkewReason.NotSkewed))
    val everywhere = IndexedSeq.fill(4)(output(12000, Seq(0, 1))(1))
    assert(SkewPlanner.plan(inputs, settings, everywhere) === Left(SkewReason.NotSkewed))
    val fewRows = output(12000, Seq(0, 1)).map(_.copy(hotRows = Seq(24, 16)))
    assert(only(SkewPlanner.plan(inputs, settings, fewRows)).slices.size === 3)
    assert(
      only(SkewPlanner
        .plan(inputs, settings.copy(maxSlices = 5), output(12000, Seq(0, 1)))).slices.size === 5)
    val large = Seq(input(Optional, 240), input(Optional, 240))
    val reread = only(SkewPlanner.plan(large, settings, output(24000, Seq(0, 1))))
    assert(reread.slices.size > 2 && reread.slices.size < (480 + 1200) / 64)
    assert(
      SkewPlanner.plan(large, settings.copy(maxRereadFactor = 1), output(9000, Seq(0, 1))) ===
        Left(SkewReason.TooMuchReread))
    assert(
      SkewPlanner.plan(large, settings.copy(minGain = 9), output(9000, Seq(0, 1))) ===
        Left(SkewReason.LittleGain))
  }

  test("output: an input whose rows can be told apart, or its blocks, or nothing") {
    val alike = input(Optional, false, 20, 20, 20)
    val alikeOneBlock = input(Optional, false, 60)
    val cuttable = input(Optional, 60)
    val hot = output(12000, Seq(0, 1))
    for ((inputs, chosen) <- Seq(Seq(alike, cuttable) -> 1, Seq(cuttable, alike) -> 0)) {
      val split = only(SkewPlanner.plan(inputs, settings, hot))
      assert(split.input === chosen)
      assert(split.slices.forall(_.shares > 1))
    }
    val blocks = only(SkewPlanner.plan(Seq(alikeOneBlock, alike), settings, hot))
    assert(blocks.input === 1)
    assert(blocks.slices.map(s => (s.startMap, s.endMap)) === Seq((0, 1), (1, 2), (2, 3)))
    assert(
      SkewPlanner.plan(Seq(alikeOneBlock, alikeOneBlock), settings, hot) ===
        Left(SkewReason.OneBlock))
    // An input without rows of the key divides nothing.
    val three = Seq(input(Optional, 60), input(Required, 60), input(Optional, 60))
    assert(only(SkewPlanner.plan(three, settings, output(12000, Seq(1, 2), of = 3))).input > 0)
    val aggregated = Seq(cuttable.copy(sliceable = false), cuttable.copy(sliceable = false))
    assert(SkewPlanner.plan(aggregated, settings, hot) === Left(SkewReason.InputNotSliceable))
  }

  test("much goes in and much comes out: smaller slices") {
    val inputs = Seq(input(Required, 100, 100, 100, 100), input(Required, 100))
    val bySize = only(SkewPlanner.plan(inputs, settings))
    val both = only(SkewPlanner.plan(inputs, settings, output(30000, Seq(0, 1))))
    assert(!bySize.byOutput)
    assert(both.slices.size > bySize.slices.size)
    assert(both.longestTask > bySize.longestTask)
    // The skewed input is not the one that divides the output: that comes out of one task.
    val other = Seq(
      input(Required, 100, 100, 100, 100),
      input(Required, false, 20),
      input(Required, false, 20))
    assert(
      SkewPlanner.plan(other, settings, output(30000, Seq(1, 2), of = 3)) ===
        Left(SkewReason.LittleGain))
  }

  // Random joins: rows with a key, a map task and a number that tells them apart.

  private case class R(key: Option[Int], map: Int, id: Int)

  private case class Case(
      inputs: Seq[Seq[R]],
      roles: Seq[InputRole],
      settings: SkewSettings,
      output: IndexedSeq[PartitionOutput]) {
    def plan: Either[SkewReason, Seq[PartitionSplit]] = SkewPlanner.plan(planned, settings, output)

    def partitionOf(r: R): Int = r.key.map(k => Math.floorMod(k, partitions)).getOrElse(0)

    val planned: Seq[SkewInput] = inputs.zip(roles).map { case (rows, role) =>
      val bytes = (0 until partitions).map(p => 10L * rows.count(partitionOf(_) == p))
      def blocks(p: Int) = (0 until maps).map { m =>
        MapBlocks(m, m + 1, 10L * rows.count(r => partitionOf(r) == p && r.map == m))
      }
      SkewInput(role, bytes, blocks)
    }
  }

  private val partitions = 3
  private val maps = 4

  private val cases: Gen[Case] = for {
    n <- Gen.choose(2, 4)
    hot <- Gen.choose(0, 6)
    weights <- Gen.listOfN(n, Gen.oneOf(0, 1, 12))
    inputs <- Gen.sequence[List[List[R]], List[R]](weights.map { weight =>
      for {
        size <- Gen.oneOf(0, 2, 8, 20)
        keys <- Gen.listOfN(
          size,
          Gen.frequency(
            2 -> Gen.choose(0, 6).map(Some(_)),
            weight -> Gen.const(Some(hot)),
            1 -> Gen.const(None)))
        // All of one map task, now and then.
        spread <- Gen.oneOf(1, maps)
        mapTasks <- Gen.listOfN(size, Gen.choose(0, spread - 1))
      } yield keys.zip(mapTasks).zipWithIndex.map { case ((k, m), id) => R(k, m, id) }
    })
    roles <- Gen
      .listOfN(n, Gen.oneOf(InputRole.public :+ Present))
      .suchThat(_.exists(_.isShown))
    maxSlices <- Gen.oneOf(2, 3, 100)
    reread <- Gen.oneOf(1.5, 4.0, 100.0)
    gain <- Gen.oneOf(1.0, 1.0, 1.5)
    marking <- Gen.oneOf(true, false)
    output <- Gen.frequency(2 -> Gen.const(Nil), 1 -> Gen.listOfN(partitions, outputs(n)))
  } yield Case(
    inputs,
    roles,
    SkewSettings(1.0, 20, 30, maxSlices, reread, gain, marking),
    output.toIndexedSeq)

  /** Also of inputs that have nothing there: it is an estimate. */
  private def outputs(n: Int): Gen[PartitionOutput] = for {
    bytes <- Gen.oneOf(0.0, 0.0, 300.0, 6000.0)
    parts <- Gen.listOfN(n, Gen.oneOf(0.0, 0.5, 1.0))
    rows <- Gen.listOfN(n, Gen.choose(1.0, 100.0))
  } yield PartitionOutput(bytes, parts.map(_ * bytes), rows)

  /** The combinations of rows that come out, as the positions and numbers of the rows. */
  private def join(inputs: Seq[Seq[R]], roles: Seq[InputRole]): Seq[Seq[(Int, Int)]] = {
    val alone = for {
      i <- inputs.indices if InputRole.emitsNullKeys(roles, i)
      r <- inputs(i) if r.key.isEmpty
    } yield Seq(i -> r.id)
    val matched = inputs.flatten.flatMap(_.key).distinct.flatMap { k =>
      val rows = inputs.map(_.filter(_.key.contains(k)))
      val out = roles.indices.forall { i =>
        roles(i) match {
          case Required | Present => rows(i).nonEmpty
          case Excluded => rows(i).isEmpty
          case Optional => true
        }
      }
      val shown = rows.zipWithIndex.filter { case (r, i) => r.nonEmpty && roles(i).isShown }
      if (!out || shown.isEmpty) Nil
      else {
        shown.foldLeft(Seq(Seq.empty[(Int, Int)])) { case (combinations, (more, i)) =>
          combinations.flatMap(c => more.map(r => c :+ (i -> r.id)))
        }
      }
    }
    alone ++ matched
  }

  private def generated(runs: Int): Seq[(Long, Case)] = {
    val first = java.time.LocalDate.now().toEpochDay * runs
    (first until first + runs).flatMap { seed =>
      cases.apply(Gen.Parameters.default, Seed(seed)).map(seed -> _)
    }
  }

  test("tasks are complete, disjoint and bounded") {
    for ((seed, c) <- generated(500); splits <- c.plan; s <- splits) {
      withClue(s"seed $seed, $c, $s: ") {
        val sizes = c.planned.map(_.bytes(s.partition))
        val out = if (c.output.isEmpty) 0.0 else c.output(s.partition).bytes
        assert(s.byOutput !== (sizes(s.input) > c.settings.skewThreshold(c.planned(s.input).bytes)))
        assert(!s.byOutput || out > c.settings.thresholdBytes)
        assert(s.slices.size <= c.settings.maxSlices)
        assert(s.longestTask * c.settings.minGain <= sizes.sum + SkewPlanner.OutputCost * out)
        if (s.marking.nonEmpty) {
          assert(s.residual)
          assert(s.marking.map(_.bytes).sum === sizes(s.input))
        }
        if (s.slices.nonEmpty) {
          val allowed = c.settings.maxRereadFactor * (sizes.sum + SkewPlanner.OutputCost * out)
          assert(s.work <= allowed)
          assert(sizes.sum + s.rereadBytes <= s.work)
          assert(s.slices.map(_.bytes).sum === sizes(s.input))
          for (m <- 0 until maps) {
            val here = s.slices.filter(x => x.startMap <= m && m < x.endMap)
            assert(here.map(_.share).sorted === (0 until here.head.shares))
            assert(here.map(x => (x.startMap, x.endMap, x.shares)).distinct.size === 1)
          }
        } else {
          assert(!c.roles(s.input).isShown)
        }
      }
    }
  }

  test("the tasks together give the rows of the join") {
    val all = generated(1500)
    var split, residuals, cut, present, byOutput = 0
    for ((seed, c) <- all; splits <- c.plan) {
      withClue(s"seed $seed, $c, $splits: ") {
        split += 1
        if (splits.exists(_.byOutput)) byOutput += 1
        val reads = SkewSplits(splits)
          .reads(
            (0 until partitions).map(p => CoalescedPartitionSpec(p, p + 1)),
            c.planned.map(_.bytes),
            splitFirst = seed % 2 == 0)
        val tasks = SkewSplits(splits).tasks(reads)
        val parts = tasks.indices.flatMap { t =>
          val rows = c.inputs.indices.map { i =>
            reads(i)(t) match {
              case CoalescedPartitionSpec(start, end, _) =>
                c.inputs(i).filter(r => start <= c.partitionOf(r) && c.partitionOf(r) < end)
              case PartialReducerPartitionSpec(p, from, until, _) =>
                c.inputs(i).filter(r => c.partitionOf(r) == p && from <= r.map && r.map < until)
              case other => fail(s"$other is no read of a join")
            }
          }
          val read = tasks(t) match {
            case SplitTask.Piece(i, slice, _) =>
              if (slice.shares > 1) cut += 1
              rows.updated(i, rows(i).filter(_.id % slice.shares == slice.share))
            case SplitTask.Residual(i, p, _) =>
              assert(
                p === Some(reads.head(t).asInstanceOf[CoalescedPartitionSpec].startReducerIndex))
              residuals += 1
              if (c.roles(i) == Present) present += 1
              rows
            case SplitTask.Whole => rows
          }
          join(read, tasks(t).roles(c.roles))
        }
        def sorted(rows: Seq[Seq[(Int, Int)]]) = rows.map(_.mkString).sorted
        assert(sorted(parts) === sorted(join(c.inputs, c.roles)))
      }
    }
    // A proof of joins that are left whole would be none.
    assert(split > all.size / 3, s"only $split of ${all.size} joins were split")
    assert(residuals > all.size / 10 && cut > all.size / 10)
    assert(present > all.size / 50 && byOutput > all.size / 30)
  }

  test("reads that Spark has coalesced after the split") {
    val slices =
      Seq(Slice(0, 2, 0, 1, 50, 50), Slice(2, 3, 0, 2, 30, 60), Slice(2, 3, 1, 2, 30, 60))
    val splits = SkewSplits(Seq(PartitionSplit(3, 1, slices, residual = true, 0, 0)))
    assert(splits.describe === "1 partition in 3 pieces, 1 residual")
    val bytes = Seq(IndexedSeq(1L, 2L, 0L, 4L, 5L, 6L), IndexedSeq(1L, 2L, 0L, 110L, 5L, 6L))
    def read(from: Int, until: Int, i: Int) =
      CoalescedPartitionSpec(from, until, (from until until).map(bytes(i)).sum)
    val ranges = Seq(CoalescedPartitionSpec(0, 2), CoalescedPartitionSpec(2, 6))
    val reads = splits.reads(ranges, bytes, splitFirst = false)
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
    // What takes longest starts first, unless Spark wants partitions in their order.
    val first = splits.reads(ranges, bytes, splitFirst = true)
    assert(first === reads.map(r => r.slice(2, 6) ++ r.take(2) ++ r.drop(6)))
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
        reads.reverse)) {
      intercept[IllegalStateException](splits.tasks(broken))
    }
  }
}
