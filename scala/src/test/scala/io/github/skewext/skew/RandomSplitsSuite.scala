package io.github.skewext.skew

import io.github.skewext.RandomSeed
import io.github.skewext.join.InputRole
import io.github.skewext.join.InputRole.{Excluded, Optional, Present, Required}
import io.github.skewext.skew.plan.{InputSizes, MapBlocks, PartitionOutput, PartitionSplit, SkewInput, SkewPlanner, SkewReason, SkewSettings, SkewSplits, SplitTask}
import org.scalacheck.Gen
import org.scalacheck.rng.Seed
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.execution.{CoalescedPartitionSpec, PartialReducerPartitionSpec}

/** Random decisions about splits, and a small interpreter of joins that proves them right. */
class RandomSplitsSuite extends AnyFunSuite {

  // Random joins: rows with a key, a map task and a number that tells them apart.

  private case class R(key: Option[Int], map: Int, id: Int)

  private case class Case(
      inputs: Seq[Seq[R]],
      roles: Seq[InputRole],
      settings: SkewSettings,
      output: IndexedSeq[PartitionOutput]) {
    def plan: Either[SkewReason, Seq[PartitionSplit]] =
      SkewPlanner.plan(planned, settings, output).left.map(_.reason).map(_.partitions)

    def partitionOf(r: R): Int = r.key.map(k => Math.floorMod(k, partitions)).getOrElse(0)

    val planned: Seq[SkewInput] = inputs.zip(roles).map { case (rows, role) =>
      val bytes = (0 until partitions).map(p => 10L * rows.count(partitionOf(_) == p))
      def blocks(p: Int) = (0 until maps).map { m =>
        MapBlocks(m, m + 1, 10L * rows.count(r => partitionOf(r) == p && r.map == m))
      }
      SkewInput(role, InputSizes(bytes, blocks))
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
    (RandomSeed.first until RandomSeed.first + runs).flatMap { seed =>
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
        assert(s.cost.longestTask * c.settings.minGain <= sizes.sum + SkewPlanner.OutputCost * out)
        if (s.marking.nonEmpty) {
          assert(s.residual)
          assert(s.marking.map(_.bytes).sum === sizes(s.input))
        }
        if (s.slices.nonEmpty) {
          val allowed = c.settings.maxRereadFactor * (sizes.sum + SkewPlanner.OutputCost * out)
          assert(s.cost.work <= allowed)
          assert(sizes.sum + s.cost.rereadBytes <= s.cost.work)
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
            splitLast = seed % 2 == 1)
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
}
